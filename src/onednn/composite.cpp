// Composites as they are compiled.

#include "onednn/composite.hpp"

#include "base/cache.hpp"
#include "base/error.hpp"
#include "onednn/real_library.hpp"
#include "onednn/region_ops.hpp"
#include "onednn/translate.hpp"

#include <algorithm>

namespace maskwise::onednn {
namespace {

// More than this inside one composite is left to oneDNN, whose own kernels work in pieces.
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
    if (bytes > max_scratch_bytes) // what is not known to oneDNN has SIZE_MAX
        throw invalid_argument(std::to_string(bytes) + " bytes of tensor " +
                               std::to_string(tensor.id) + " are too many to keep");
    return padded_bytes(bytes);
}

} // namespace

composite::composite(const region_record& region, const std::vector<abi::logical_tensor>& inputs,
                     const std::vector<abi::logical_tensor>& outputs, abi::engine engine)
    : inputs_(own_inputs(region, inputs)), outputs_(outputs), output_ids_(region.output_ids),
      needed_outputs_(own_output_count(output_ids_, outputs)), chain_(region.chain),
      engine_(engine) {
    for (const std::size_t id : region.output_ids) require_given(id);
    require_types(region, inputs_);
    require_types(region, outputs_);
    if (chain_.op_ids.empty()) {
        refuse_host_scalars(ops_of(region), by_id(inputs_));
        after_ = std::make_unique<real_part>(ops_of(region), region.settings, by_id(inputs_),
                                             outputs_of(region, outputs_), engine);
        take_outputs();
    } else {
        compile_parts(region, engine);
        compile_rows(chain_);
    }
    keep_scratchpad();
    if (scratch_bytes_ > max_scratch_bytes)
        throw invalid_argument(std::to_string(scratch_bytes_) + " bytes of scratch are too many");
}

// oneDNN may survive an output that is left out or open; its parts may not.
void composite::require_given(std::size_t output) const {
    const auto* given = find_by_id(outputs_, output);
    if (given == nullptr)
        throw invalid_argument("output " + std::to_string(output) + " is not asked for");
    if (given->layout_type != abi::layout_any) to_desc(from_abi(*given)); // throws where it is open
}

void composite::keep_inside(const abi::logical_tensor& tensor) {
    internal_.emplace(tensor.id, internal_place{tensor, scratch_bytes_});
    scratch_bytes_ += bytes_of(tensor);
}

// Rows are run in place where their type does not change.
void composite::keep_result_inside() {
    if (result_.data_type != scores_.data_type) return keep_inside(result_);
    internal_.emplace(result_.id, internal_place{result_, internal_.at(scores_.id).offset_bytes});
}

// One for both parts, which never run at the same time. Left to the library, it would be allocated
// anew in every execution, and above 128 KiB every page of it touched for the first time.
void composite::keep_scratchpad() {
    const std::size_t bytes =
        std::max(before_ ? before_->scratch_bytes() : 0, after_ ? after_->scratch_bytes() : 0);
    if (bytes > 0) keep_inside(scratchpad_of(bytes));
}

// The result has the shape of the scores; its type is the graph's word.
void composite::compile_parts(const region_record& region, abi::engine engine) {
    op_list before, after;
    divide_ops(region, before, after);
    refuse_host_scalars(before, by_id(inputs_));
    refuse_host_scalars(after, by_id(inputs_));
    const auto* const given = find_by_id(inputs_, chain_.scores);
    scores_ = given != nullptr ? *given : dense(described(region, chain_.scores));
    result_ = dense(scores_);
    result_.id = chain_.result;
    result_.data_type = described(region, chain_.result).data_type;
    if (given == nullptr)
        compile_before(before, handed_over(region, before, after), region, engine);
    if (chain_.statistics) place_statistics();
    if (!after.empty()) return compile_after(after, region, engine);
    let_result_leave();
    for (const std::size_t id : region.output_ids)
        if (id != result_.id && (!statistics_ || id != statistics_->id))
            throw invalid_argument("output " + std::to_string(id) + " is made before the chain");
}

void composite::compile_before(const std::vector<const op_record*>& before, tensor_map wanted,
                               const region_record& region, abi::engine engine) {
    wanted.emplace(scores_.id, scores_);
    before_ = std::make_unique<real_part>(before, region.settings, by_id(inputs_), wanted, engine);
    for (const auto& [id, tensor] : before_->intermediates()) keep_inside(tensor);
    for (const auto& [id, tensor] : before_->outputs()) keep_inside(tensor);
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
    if (wanted == outputs_.end()) return keep_inside(*statistics_);
    statistics_->property = wanted->property;
    if (wanted->layout_type == abi::layout_any) *wanted = *statistics_;
    statistics_ = *wanted;
}

void composite::let_result_leave() {
    for (auto& output : outputs_) {
        if (output.id != result_.id) continue;
        result_.property = output.property;
        if (output.layout_type == abi::layout_any) output = result_;
        result_ = output;
        return;
    }
    throw invalid_argument("the chain's result is not asked for");
}

void composite::compile_after(const std::vector<const op_record*>& after,
                              const region_record& region, abi::engine engine) {
    keep_result_inside();
    auto given = by_id(inputs_);
    given.emplace(result_.id, result_);
    if (before_)
        for (const auto& [id, tensor] : before_->outputs()) given.emplace(id, tensor);
    auto wanted = outputs_of(region, outputs_);
    if (statistics_) {
        given.emplace(statistics_->id, *statistics_);
        wanted.erase(statistics_->id);
    }
    after_ = std::make_unique<real_part>(after, region.settings, given, wanted, engine);
    take_outputs();
}

// As the part after lays them out.
void composite::take_outputs() {
    for (auto& output : outputs_)
        if (const auto made = after_->outputs().find(output.id); made != after_->outputs().end())
            output = made->second;
    for (const auto& [id, tensor] : after_->intermediates()) keep_inside(tensor);
}

tensor_desc composite::describe_input(std::size_t id) const {
    if (const auto* given = find_by_id(inputs_, id)) return to_input_desc(from_abi(*given));
    throw invalid_argument("tensor " + std::to_string(id) + " is not in the list given to compile");
}

void composite::compile_rows(const graph::row_chain& chain) {
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

std::optional<abi::inplace_pair> composite::inplace() const {
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
