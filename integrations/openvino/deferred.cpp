#include "deferred.hpp"

#include "block_claims.hpp"
#include "claims.hpp"
#include "select.hpp"

#include <openvino/op/matmul.hpp>
#include <openvino/op/softmax.hpp>
#include <openvino/op/util/multi_subgraph_base.hpp>

#include <link.h>
#include <unwind.h>

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace maskwise::openvino {
namespace {

namespace op = ov::op;

struct code_range {
    std::uintptr_t begin, end;
};
using code_ranges = std::vector<code_range>;

// libopenvino_intel_cpu_plugin.so, on other processors arm or riscv.
bool is_cpu_plugin(std::string_view path) {
    const std::string_view name = path.substr(path.rfind('/') + 1);
    return name.starts_with("libopenvino_") && name.find("_cpu_plugin") != name.npos;
}

int add_code(dl_phdr_info* library, std::size_t /*size*/, void* found) {
    if (!is_cpu_plugin(library->dlpi_name)) return 0;
    for (const auto *part = library->dlpi_phdr, *end = part + library->dlpi_phnum; part != end;
         ++part)
        if (part->p_type == PT_LOAD && (part->p_flags & PF_X) != 0) {
            const std::uintptr_t begin = library->dlpi_addr + part->p_vaddr;
            static_cast<code_ranges*>(found)->push_back({begin, begin + part->p_memsz});
        }
    return 0;
}

struct search {
    code_ranges code;
    bool found = false;
};

_Unwind_Reason_Code look_at(_Unwind_Context* frame, void* state) {
    auto& sought = *static_cast<search*>(state);
    const std::uintptr_t address = _Unwind_GetIP(frame);
    for (const auto& range : sought.code)
        if (address > range.begin && address <= range.end) sought.found = true;
    return sought.found ? _URC_NORMAL_STOP : _URC_NO_REASON;
}

// Whether OpenVINO's CPU plugin has called, through whatever lies between. It clones each model
// that it compiles, by the same functions as everybody else.
bool is_called_by_cpu_plugin() {
    search sought;
    dl_iterate_phdr(add_code, &sought.code);
    if (!sought.code.empty()) _Unwind_Backtrace(look_at, &sought);
    return sought.found;
}

template <class base>
class deferred_end : public base, public deferred {
public:
    template <class... Arguments>
    explicit deferred_end(deferral how, Arguments&&... arguments)
        : base(std::forward<Arguments>(arguments)...), how_(std::move(how)) {}

    std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& inputs) const override {
        if (!is_called_by_cpu_plugin()) return defer_end(*this, inputs, how_);
        const auto found = find();
        return found ? found->make(inputs) : base::clone_with_new_inputs(inputs);
    }
    node_set taken() const override {
        const auto found = find();
        return found ? found->nodes : node_set{};
    }

private:
    std::optional<found_block> find() const {
        auto found = find_block(*this, how_.replaced.lock().get());
        if (!found) return found;
        const bool is_ours =
            how_.is_taken ? reason_of_form(*found, *this).empty() : is_claimed(*found, *this, {});
        if (!is_ours) found.reset();
        return found;
    }

    deferral how_;
};

void add_taken(const ov::Model& model, std::vector<std::string>& names) {
    node_set taken;
    for (const auto& node : model.get_ordered_ops())
        if (const auto* const own = dynamic_cast<const deferred*>(node.get())) {
            const node_set more = own->taken();
            taken.insert(more.begin(), more.end());
        }
    for (const auto& node : model.get_ordered_ops()) {
        if (const auto* holder = ov::as_type<op::util::MultiSubGraphOp>(node.get()))
            for (const auto& body : holder->get_functions()) add_taken(*body, names);
        if (taken.count(node.get()) > 0) names.push_back(node->get_friendly_name());
    }
}

} // namespace

deferred_select::deferred_select(const ov::OutputVector& inputs,
                                 const op::AutoBroadcastSpec& broadcast, bool is_taken)
    : Select(inputs.at(0), inputs.at(1), inputs.at(2), broadcast), is_taken_(is_taken) {}

bool deferred_select::becomes_ours() const {
    return is_taken_ ? reason_of_form(*this).empty() : is_claimed(*this, {});
}

node_set deferred_select::taken() const {
    return becomes_ours() ? node_set{this} : node_set{};
}

std::shared_ptr<ov::Node>
deferred_select::clone_with_new_inputs(const ov::OutputVector& inputs) const {
    if (!is_called_by_cpu_plugin())
        return std::make_shared<deferred_select>(inputs, get_autob(), is_taken_);
    if (becomes_ours()) return std::make_shared<select>(inputs, get_autob());
    return Select::clone_with_new_inputs(inputs);
}

std::shared_ptr<ov::Node> defer_end(const ov::Node& end, const ov::OutputVector& inputs,
                                    const deferral& how) {
    if (const auto* product = ov::as_type<const op::v0::MatMul>(&end))
        return std::make_shared<deferred_end<op::v0::MatMul>>(how, inputs.at(0), inputs.at(1),
                                                              product->get_transpose_a(),
                                                              product->get_transpose_b());
    if (const auto* whole = ov::as_type<const op::v13::ScaledDotProductAttention>(&end))
        return std::make_shared<deferred_end<op::v13::ScaledDotProductAttention>>(
            how, inputs, whole->get_causal());
    if (const auto* v1 = ov::as_type<const op::v1::Softmax>(&end))
        return std::make_shared<deferred_end<op::v1::Softmax>>(how, inputs.at(0), v1->get_axis());
    const auto& v8 = dynamic_cast<const op::v8::Softmax&>(end);
    return std::make_shared<deferred_end<op::v8::Softmax>>(how, inputs.at(0), v8.get_axis());
}

// An imported model has been compiled before: what is OpenVINO's in it stays so.
std::shared_ptr<ov::Node> make_node_of_ir(const ov::DiscreteTypeInfo& type) {
    const bool is_imported = is_called_by_cpu_plugin();
    const auto make = [&](const auto& plain, const auto& deferred) -> std::shared_ptr<ov::Node> {
        return is_imported ? plain() : deferred();
    };
    if (type == op::v0::MatMul::get_type_info_static())
        return make([] { return std::make_shared<op::v0::MatMul>(); },
                    [] { return std::make_shared<deferred_end<op::v0::MatMul>>(deferral{}); });
    if (type == op::v1::Select::get_type_info_static())
        return make([] { return std::make_shared<op::v1::Select>(); },
                    [] { return std::make_shared<deferred_select>(); });
    using whole = op::v13::ScaledDotProductAttention;
    return make([] { return std::make_shared<whole>(); },
                [] { return std::make_shared<deferred_end<whole>>(deferral{}); });
}

std::vector<std::string> names_of_taken(const ov::Model& model) {
    std::vector<std::string> names;
    add_taken(model, names);
    return names;
}

} // namespace maskwise::openvino
