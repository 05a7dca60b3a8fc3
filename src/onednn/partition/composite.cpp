// Composites as they are compiled.

#include "onednn/partition/composite.hpp"

#include "base/cache.hpp"
#include "base/error.hpp"
#include "onednn/library/real_library.hpp"
#include "onednn/partition/region_ports.hpp"
#include "onednn/record/translate.hpp"

#include <algorithm>

namespace maskwise::onednn {
namespace {

// Beyond this, oneDNN runs the partition: its own kernels work in pieces.
constexpr std::size_t max_scratch_bytes = std::size_t{1} << 30;

// Row-major and without gaps: the layout in which rows are run.
abi::logical_tensor dense(abi::logical_tensor tensor) {
    if (tensor.ndims < 1) throw invalid_argument("the rank of the scores is not known");
    const dims shape(std::span(tensor.dims, static_cast<std::size_t>(tensor.ndims)));
    if (*std::ranges::min_element(shape) <= 0)
        throw invalid_argument("the shape of the scores is not known");
    tensor.layout_type = abi::layout_strided;
    std::ranges::copy(dense_strides(shape, 1), tensor.layout.strides);
    return tensor;
}

std::size_t bytes_of(const abi::logical_tensor& tensor) {
    std::size_t bytes = 0;
    if (call_real(&real_library::logical_tensor_get_mem_size, &tensor, &bytes) != abi::success)
        throw invalid_argument("the size of tensor " + std::to_string(tensor.id) + " is not known");
    if (bytes > max_scratch_bytes) // SIZE_MAX where oneDNN does not know the size
        throw invalid_argument(std::to_string(bytes) + " bytes of tensor " +
                               std::to_string(tensor.id) + " are too many to keep");
    return padded_bytes(bytes);
}

} // namespace

composite::composite(const row_region& region, const compile_call& call)
    : executable(call), own_inputs_(own_inputs(region, inputs_)), output_ids_(region.output_ids),
      needed_outputs_(own_output_count(output_ids_, outputs_)), chain_(region.chain),
      settings_(region.settings), engine_(call.engine) {
    for (const std::size_t id : region.output_ids) require_requested_output(id);
    require_types(region, own_inputs_);
    require_types(region, outputs_);
    if (chain_.op_ids.empty()) {
        compile_after(region.records, outputs_of(region, outputs_));
    } else {
        compile_parts(region);
        plan_rows(chain_);
    }
    place_scratchpad();
    if (scratch_bytes_ > max_scratch_bytes)
        throw invalid_argument(std::to_string(scratch_bytes_) + " bytes of scratch are too many");
    inplace_ = find_inplace();
}

// oneDNN may survive an output that is left out or open; its parts may not.
void composite::require_requested_output(std::size_t output) const {
    const auto* given = find_by_id(outputs_, output);
    if (given == nullptr)
        throw invalid_argument("output " + std::to_string(output) + " is not asked for");
    if (given->layout_type != abi::layout_any) to_desc(from_abi(*given)); // throws where it is open
}

void composite::place_in_scratch(std::size_t id, const abi::logical_tensor& tensor) {
    internal_.emplace(id, internal_place{tensor, scratch_bytes_});
    scratch_bytes_ += bytes_of(tensor);
}

// Rows are run in place where their type does not change.
void composite::place_result_in_scratch() {
    if (result_.data_type != scores_.data_type) return place_in_scratch(result_.id, result_);
    internal_.emplace(result_.id, internal_place{result_, internal_.at(scores_.id).offset_bytes});
}

// One for both parts, which never run at the same time. Left to the library, it would be allocated
// in every execution, and above 128 KiB every page of it touched for the first time.
void composite::place_scratchpad() {
    const std::size_t bytes =
        std::max(before_ ? before_->scratch_bytes() : 0, after_ ? after_->scratch_bytes() : 0);
    if (bytes > 0) place_in_scratch(scratchpad_id, scratchpad_of(bytes));
}

// The result has the shape of the scores and the type that the graph gives it.
void composite::compile_parts(const row_region& region) {
    const auto parts = graph::divide(region.ops, chain_.op_ids, chain_.scores);
    const auto after = records_of(region.records, parts.after);
    const auto* const given = find_by_id(own_inputs_, chain_.scores);
    scores_ = given != nullptr ? *given : dense(recorded_output(region, chain_.scores));
    result_ = dense(scores_);
    result_.id = chain_.result;
    result_.data_type = recorded_output(region, chain_.result).data_type;
    const auto before = records_of(region.records, parts.before);
    refuse_host_scalars(before, by_id(own_inputs_));
    if (given == nullptr) compile_before(before, values_between(region, parts));
    if (chain_.statistics) place_statistics();
    if (after.empty()) {
        bind_result_to_output();
        return require_nothing_else_leaves();
    }
    place_result_in_scratch();
    auto wanted = outputs_of(region, outputs_);
    if (statistics_) wanted.erase(statistics_->id);
    compile_after(after, wanted);
}

void composite::require_nothing_else_leaves() const {
    for (const std::size_t id : output_ids_)
        if (id != result_.id && (!statistics_ || id != statistics_->id))
            throw invalid_argument("output " + std::to_string(id) + " is made before the chain");
}

void composite::compile_before(const op_list& before, tensor_map wanted) {
    wanted.emplace(scores_.id, scores_);
    before_ =
        std::make_unique<onednn_subgraph>(before, settings_, by_id(own_inputs_), wanted, engine_);
    for (const auto& [id, tensor] : before_->intermediates()) place_in_scratch(id, tensor);
    for (const auto& [id, tensor] : before_->outputs()) place_in_scratch(id, tensor);
}

// One number a row, for the client or for the part after.
void composite::place_statistics() {
    statistics_ = scores_;
    statistics_->id = chain_.statistics->id;
    statistics_->data_type = abi::type_f32;
    statistics_->dims[scores_.ndims - 1] = 1;
    statistics_ = dense(*statistics_);
    const auto wanted = std::find_if(outputs_.begin(), outputs_.end(), [&](const auto& output) {
        return output.id == statistics_->id;
    });
    if (wanted == outputs_.end()) return place_in_scratch(statistics_->id, *statistics_);
    statistics_->property = wanted->property;
    if (wanted->layout_type == abi::layout_any) *wanted = *statistics_;
    statistics_ = *wanted;
}

void composite::bind_result_to_output() {
    for (auto& output : outputs_) {
        if (output.id != result_.id) continue;
        result_.property = output.property;
        if (output.layout_type == abi::layout_any) output = result_;
        result_ = output;
        return;
    }
    throw invalid_argument("the chain's result is not asked for");
}

// Outputs are laid out as this part lays them out.
void composite::compile_after(const op_list& after, const tensor_map& wanted) {
    auto given = by_id(own_inputs_);
    refuse_host_scalars(after, given);
    if (!chain_.op_ids.empty()) given.emplace(result_.id, result_);
    if (before_) given.insert(before_->outputs().begin(), before_->outputs().end());
    if (statistics_) given.emplace(statistics_->id, *statistics_);
    after_ = std::make_unique<onednn_subgraph>(after, settings_, given, wanted, engine_);
    for (auto& output : outputs_)
        if (const auto made = after_->outputs().find(output.id); made != after_->outputs().end())
            output = made->second;
    for (const auto& [id, tensor] : after_->intermediates()) place_in_scratch(id, tensor);
}

tensor_desc composite::describe_input(std::size_t id) const {
    if (const auto* given = find_by_id(own_inputs_, id)) return to_input_desc(from_abi(*given));
    throw invalid_argument("tensor " + std::to_string(id) + " is not in the list given to compile");
}

void composite::plan_rows(const graph::row_chain& chain) {
    row_desc desc;
    desc.scores = to_desc(from_abi(scores_));
    desc.result = to_desc(from_abi(result_));
    for (const auto& operand : chain.operands) desc.operands.push_back(describe_input(operand.id));
    for (const auto& term : chain.boundary) {
        const auto given = describe_input(term.tensor.id);
        if (given.type != data_type::i32 || element_count(given.extents) != 1)
            throw invalid_argument("the causal boundary is moved by " +
                                   std::string(to_string(given.type)) + ' ' +
                                   to_string(given.extents) + ", not by one i32");
    }
    desc.steps = chain.steps;
    desc.soft_max = chain.soft_max;
    desc.quantize = chain.quantize;
    if (statistics_) desc.statistics = to_desc(from_abi(*statistics_));
    rows_ = make_row_plan(desc, active_isa(), stream_threshold_bytes());
}

bool composite::makes(std::size_t id) const {
    return is_among(output_ids_, id);
}

std::string composite::describe() const {
    if (rows_.kernels == nullptr) return "oneDNN operator by operator";
    std::string text = to_string(rows_) + ": operators";
    for (const std::size_t id : chain_.op_ids) text.append(" ").append(std::to_string(id));
    return text;
}

// Where the rows are all there is: the scores may be overwritten by a result of their layout.
std::optional<abi::inplace_pair> composite::find_inplace() const {
    const bool is_alone = rows_.kernels != nullptr && !before_ && !after_;
    const bool is_operand =
        std::any_of(chain_.operands.begin(), chain_.operands.end(),
                    [this](const auto& operand) { return operand.id == chain_.scores; });
    if (!is_alone || is_operand || scores_.property == abi::property_constant ||
        scores_.data_type != result_.data_type ||
        !std::equal(scores_.layout.strides, scores_.layout.strides + scores_.ndims,
                    result_.layout.strides))
        return std::nullopt;
    return abi::inplace_pair{scores_.id, result_.id};
}

} // namespace maskwise::onednn
