#include "fused_kernel.hpp"

#include "graph_facts.hpp"
#include "loop.hpp"
#include "tensors.hpp"

#include "base/verbose.hpp"

#include <algorithm>
#include <utility>

namespace maskwise::ort {
namespace {

class fused_kernel : public abi::layout::compute_info {
public:
    fused_kernel(const runtime& with, const abi::node* node, fused_node form,
                 std::shared_ptr<session_facts> session)
        : abi::layout::compute_info{abi::api_version, create_state, compute, release_state},
          with_(with), form_(std::move(form)), session_(std::move(session)) {
        const auto inputs = inputs_of(with, node);
        for (const std::string& name : form_.inputs) {
            const auto found = std::ranges::find_if(
                inputs, [&](const auto* input) { return name_of(with, input) == name; });
            if (found == inputs.end())
                throw error("the node fused around " + form_.name + " has no input " + name);
            places_.push_back(static_cast<std::size_t>(found - inputs.begin()));
        }
    }

private:
    static abi::status* create_state(abi::compute_info*, abi::compute_context*,
                                     void** state) noexcept {
        *state = nullptr;
        return nullptr;
    }
    static void release_state(abi::compute_info*, void*) noexcept {}
    static abi::status* compute(abi::compute_info* own, void*,
                                abi::kernel_context* context) noexcept {
        auto& self = *static_cast<fused_kernel*>(own);
        return guarded(self.with_, [&] { self.run(context); });
    }

    void run(abi::kernel_context* context) {
        std::vector<const void*> addresses;
        fusion::operand_shapes shapes;
        for (const std::size_t place : places_) {
            const input_tensor input = read_input(with_, context, place);
            fusion::append(shapes, input.desc);
            addresses.push_back(input.data);
        }
        const auto compiled = compiled_.find(shapes, [&] { return compile(context); });
        void* output = nullptr;
        check(with_.GetTensorMutableData(make_output(with_, context, compiled->dst()), &output));
        const parallel_loop loop = loop_of(with_, context, session_->threads());
        run_measured(*compiled, [&] {
            compiled->run({addresses, output}, &loop, &session_->scratch());
        });
    }

    fusion::recent_blocks::pointer compile(abi::kernel_context* context) const {
        std::vector<tensor_desc> inputs;
        for (const std::size_t place : places_)
            inputs.push_back(read_input(with_, context, place).desc);
        try {
            return fusion::compile(form_.block, inputs, {{form_.type, {}}});
        } catch (const invalid_shape& refused) {
            throw invalid_shape("Maskwise, around " +
                                (form_.name.empty() ? form_.output : form_.name) + ": " +
                                refused.what());
        }
    }

    const runtime& with_;
    const fused_node form_;
    const std::shared_ptr<session_facts> session_;
    std::vector<std::size_t> places_; // of the form's inputs among the node's
    fusion::recent_blocks compiled_;
};

} // namespace

abi::compute_info* make_fused_kernel(const runtime& with, const abi::node* node, fused_node form,
                                     std::shared_ptr<session_facts> session) {
    return new fused_kernel(with, node, std::move(form), std::move(session));
}

void release_fused_kernel(abi::compute_info* kernel) noexcept {
    delete static_cast<fused_kernel*>(kernel);
}

} // namespace maskwise::ort
