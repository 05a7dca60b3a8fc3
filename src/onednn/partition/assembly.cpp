#include "onednn/partition/assembly.hpp"

#include "base/error.hpp"
#include "graph/op_set.hpp"
#include "onednn/library/real_library.hpp"
#include "tensor/tensor_desc.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace maskwise::onednn {
namespace {

// A partition that needs more scratch is left to oneDNN, whose kernels compute tile by tile.
constexpr std::size_t max_scratch_bytes = std::size_t{1} << 30;

// Throws argument_error if a tensor's type differs from its type at add_op: inner values would then
// differ from the recorded types.
void require_types(const row_region& region, const tensor_list& at_compile) {
    // Without a block, the operators run one by one, and oneDNN accepts several types of cond.
    const auto may_differ = [&](const logical_tensor& recorded) {
        return !region.block && recorded.type == data_type::boolean;
    };
    for (const auto& op : region.ops)
        for (const auto* list : {&op.inputs, &op.outputs})
            for (const auto& recorded : *list) {
                const auto* const now = find_by_id(at_compile, recorded.id);
                if (now != nullptr && !now->has_type_of(recorded) && !may_differ(recorded))
                    throw argument_error("tensor " + std::to_string(recorded.id) +
                                         " has another type than at add_op");
            }
}

void require_outputs(const row_region& region, const tensor_list& outputs) {
    for (const std::size_t id : region.output_ids) {
        const auto* const output = find_by_id(outputs, id);
        if (output == nullptr)
            throw argument_error("output " + std::to_string(id) + " is not in the list of outputs");
        if (output->layout != graph::layout_kind::any)
            to_desc(*output); // throws if the shape or the strides are unknown
    }
}

std::size_t bytes_of(const logical_tensor& tensor) {
    if (tensor.layout == graph::layout_kind::strided)
        to_desc(tensor); // throws on overflow, which oneDNN does not notice
    std::size_t bytes = 0;
    const auto described = to_abi(tensor);
    if (real_logical_tensor_get_mem_size(&described, &bytes) != abi::success)
        throw argument_error("the size of tensor " + std::to_string(tensor.id) + " is not known");
    if (bytes > max_scratch_bytes) // SIZE_MAX if oneDNN does not know the size
        throw argument_error(std::to_string(bytes) + " bytes of tensor " +
                             std::to_string(tensor.id) + " are too many for scratch memory");
    return padded_bytes(bytes);
}

tensor_desc output_desc(const logical_tensor& output) {
    return output.layout == graph::layout_kind::any ? tensor_desc{output.type, {}, {}}
                                                    : to_desc(output);
}

} // namespace

logical_tensor completed(logical_tensor output, const dims& extents) {
    if (output.layout != graph::layout_kind::any) return output;
    output.rank_known = true;
    output.extents = extents;
    output.layout = graph::layout_kind::strided;
    output.strides_elems = dense_strides(extents, 1);
    return output;
}

logical_tensor scratchpad_of(std::size_t bytes) {
    logical_tensor scratchpad;
    scratchpad.id = SIZE_MAX; // no client uses this id
    scratchpad.type = data_type::u8;
    scratchpad.rank_known = true;
    scratchpad.extents = {static_cast<std::int64_t>(bytes)};
    scratchpad.layout = graph::layout_kind::strided;
    scratchpad.strides_elems = {1};
    scratchpad.property = graph::property_kind::variable;
    return scratchpad;
}

assembly::assembly(partition_kind kind, const row_region& region, const compile_request& request)
    : region_(region), parts_(kind, request) {
    parts_.output_ids = region.output_ids;
    require_outputs(region, parts_.outputs);
    tensor_list inputs;
    for (std::size_t i = 0; i < parts_.inputs.size(); ++i) {
        const auto& input = parts_.inputs[i];
        if (graph::makes(region.ops, input.id) || !graph::reads(region.ops, input.id)) continue;
        inputs.push_back(input);
        if (find(input.id) == nullptr) values_[input.id] = {input, parts_.input_at(i)};
    }
    require_types(region, inputs);
    require_types(region, parts_.outputs);
}

const logical_tensor* assembly::find(std::size_t id) const {
    const auto value = values_.find(id);
    return value == values_.end() ? nullptr : &value->second.tensor;
}

const assembly::known_value& assembly::find_value(std::size_t id) const {
    const auto value = values_.find(id);
    if (value == values_.end())
        throw argument_error("tensor " + std::to_string(id) +
                             " is not in the list given to compile, and no segment makes it");
    return value->second;
}

const logical_tensor& assembly::known(std::size_t id) const {
    return find_value(id).tensor;
}

place assembly::place_of(std::size_t id) const {
    return find_value(id).memory;
}

source assembly::source_of(std::size_t id) const {
    const auto& [tensor, memory] = find_value(id);
    return {memory, graph::is_one_element(tensor)};
}

logical_tensor assembly::wanted(std::size_t id) const {
    if (parts_.makes(id)) return *find_by_id(parts_.outputs, id);
    for (const auto& op : region_.ops)
        if (const auto* const output = find_by_id(op.outputs, id)) {
            auto recorded = *output;
            recorded.layout = graph::layout_kind::any;
            return recorded;
        }
    throw argument_error("no operator of the partition makes tensor " + std::to_string(id));
}

place assembly::add(const logical_tensor& value) {
    if (!parts_.makes(value.id)) return (values_[value.id] = {value, add_inner(value)}).memory;
    const auto output = std::ranges::find(parts_.outputs, value.id, &logical_tensor::id);
    *output = value;
    const auto position = static_cast<std::size_t>(output - parts_.outputs.begin());
    return (values_[value.id] = {value, parts_.output_at(position)}).memory;
}

place assembly::add_inner(const logical_tensor& tensor) {
    parts_.inner.push_back({tensor, parts_.inner_bytes});
    parts_.inner_bytes += bytes_of(tensor);
    return {place::list::inner, parts_.inner.size() - 1};
}

// Without this memory, oneDNN would allocate a scratchpad in every execution. Above 128 KiB
// (glibc's mmap threshold), the scratchpad would consist of fresh pages, whose first access is
// slow.
place assembly::scratchpad(std::size_t bytes) {
    if (!scratchpad_) {
        scratchpad_ = parts_.inner.size();
        parts_.inner.emplace_back();
    }
    scratchpad_bytes_ = std::max(scratchpad_bytes_, bytes);
    return {place::list::inner, *scratchpad_};
}

// A row chain overwrites its scores if scores and result are inner values of one type and layout.
place assembly::add_result(const fusion::block& block, const logical_tensor& result) {
    if (!block.attention && !parts_.makes(result.id)) {
        const auto& [scores, memory] = find_value(block.rows.scores);
        if (memory.in == place::list::inner && lie_alike(scores, result) &&
            scores.has_type_of(result)) {
            parts_.inner.push_back({result, parts_.inner[memory.position].offset_bytes});
            return (values_[result.id] = {result, {memory.in, parts_.inner.size() - 1}}).memory;
        }
    }
    return add(result);
}

assembly::segment_inputs assembly::inputs_of(const std::vector<std::size_t>& ids) const {
    segment_inputs inputs;
    for (const std::size_t id : ids) {
        inputs.descs.push_back(to_input_desc(known(id)));
        inputs.sources.push_back(source_of(id));
    }
    return inputs;
}

std::shared_ptr<const fusion::compiled_block>
assembly::add_block(const fusion::block& block, attention_order order, std::string ending) {
    auto inputs = inputs_of(block.inputs());
    const auto result = wanted(block.result());
    fusion::block_outputs outputs{output_desc(result), {}, order};
    std::optional<logical_tensor> statistics;
    if (block.rows.statistics) {
        statistics = wanted(block.rows.statistics->id);
        outputs.statistics = output_desc(*statistics);
    }
    auto compiled = fusion::compile(block, inputs.descs, outputs);
    block_segment::outputs results{add_result(block, completed(result, compiled->dst())), {}};
    if (statistics) results.statistics = add(completed(*statistics, compiled->statistics()));
    parts_.inplace = find_inplace(block);
    add(std::make_unique<block_segment>(compiled, std::move(inputs.sources), results,
                                        std::move(ending)));
    return compiled;
}

std::shared_ptr<const fusion::compiled_gradients>
assembly::add_gradients(const fusion::gradients_chain& chain) {
    auto inputs = inputs_of(chain.inputs());
    std::array<logical_tensor, 3> results{wanted(chain.query_gradient), wanted(chain.key_gradient),
                                          wanted(chain.value_gradient)};
    std::array<tensor_desc, 3> outputs;
    std::ranges::transform(results, outputs.begin(), output_desc);
    auto compiled =
        std::make_shared<const fusion::compiled_gradients>(chain, inputs.descs, outputs);
    std::array<place, 3> places;
    for (std::size_t i = 0; i < results.size(); ++i)
        places[i] = add(completed(results[i], compiled->result(i)));
    add(std::make_unique<gradients_segment>(compiled, std::move(inputs.sources), places));
    return compiled;
}

// If a row chain is the first segment, its output may overwrite the scores. Both must have one type
// and layout. The scores must not be a constant or an operand of the chain.
std::optional<abi::inplace_pair> assembly::find_inplace(const fusion::block& block) const {
    const auto& rows = block.rows;
    if (block.attention || !parts_.segments.empty()) return std::nullopt;
    const auto &scores = known(rows.scores), &result = known(rows.result);
    const bool is_operand = std::ranges::any_of(
        rows.operands, [&](const auto& operand) { return operand.id == rows.scores; });
    if (is_operand || place_of(rows.result).in != place::list::outputs ||
        scores.property == graph::property_kind::constant || !scores.has_type_of(result) ||
        !graph::lie_alike(scores, result))
        return std::nullopt;
    return abi::inplace_pair{scores.id, result.id};
}

std::unique_ptr<executable> assembly::finish() {
    for (const std::size_t id : region_.output_ids)
        if (find(id) == nullptr)
            throw argument_error("no segment makes output " + std::to_string(id));
    if (scratchpad_) {
        parts_.inner[*scratchpad_] = {scratchpad_of(scratchpad_bytes_), parts_.inner_bytes};
        parts_.inner_bytes += padded_bytes(scratchpad_bytes_);
    }
    if (parts_.inner_bytes > max_scratch_bytes)
        throw argument_error(std::to_string(parts_.inner_bytes) + " bytes of scratch are too many");
    return std::make_unique<executable>(std::move(parts_));
}

} // namespace maskwise::onednn
