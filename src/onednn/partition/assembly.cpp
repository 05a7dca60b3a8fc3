#include "onednn/partition/assembly.hpp"

#include "base/error.hpp"
#include "graph/op_set.hpp"
#include "onednn/library/real_library.hpp"
#include "onednn/record/translate.hpp"
#include "tensor/tensor_desc.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace maskwise::onednn {
namespace {

// Beyond this, oneDNN runs the partition: its own kernels work in pieces.
constexpr std::size_t max_scratch_bytes = std::size_t{1} << 30;

// Values inside the partition have the types of add_op; with others oneDNN would choose its own.
void require_types(const row_region& region, const std::vector<abi::logical_tensor>& given) {
    // What runs operator by operator takes a cond of any type that oneDNN takes.
    const auto may_differ = [&](const abi::logical_tensor& recorded) {
        return !region.block && recorded.data_type == abi::type_boolean;
    };
    for (const auto& op : region.records)
        for (const auto* list : {&op->inputs, &op->outputs})
            for (const auto& tensor : *list) {
                const auto* now = find_by_id(given, tensor.id);
                if (now != nullptr && now->data_type != tensor.data_type && !may_differ(tensor))
                    throw argument_error("tensor " + std::to_string(tensor.id) +
                                         " has another type than at add_op");
            }
}

void require_outputs(const row_region& region, const std::vector<abi::logical_tensor>& given) {
    for (const std::size_t id : region.output_ids) {
        const auto* output = find_by_id(given, id);
        if (output == nullptr)
            throw argument_error("output " + std::to_string(id) + " is not asked for");
        if (output->layout_type != abi::layout_any)
            to_desc(from_abi(*output)); // throws where it is open
    }
}

std::size_t bytes_of(const abi::logical_tensor& tensor) {
    if (tensor.layout_type == abi::layout_strided)
        to_desc(from_abi(tensor)); // throws on overflow, which oneDNN does not notice
    std::size_t bytes = 0;
    if (real_logical_tensor_get_mem_size(&tensor, &bytes) != abi::success)
        throw argument_error("the size of tensor " + std::to_string(tensor.id) + " is not known");
    if (bytes > max_scratch_bytes) // SIZE_MAX where oneDNN does not know the size
        throw argument_error(std::to_string(bytes) + " bytes of tensor " +
                             std::to_string(tensor.id) + " are too many to keep");
    return padded_bytes(bytes);
}

tensor_desc output_desc(const abi::logical_tensor& output) {
    const auto tensor = from_abi(output);
    return output.layout_type == abi::layout_any ? tensor_desc{tensor.type, {}, {}}
                                                 : to_desc(tensor);
}

} // namespace

abi::logical_tensor completed(abi::logical_tensor output, const dims& extents) {
    if (output.layout_type != abi::layout_any) return output;
    output.ndims = extents.rank();
    output.layout_type = abi::layout_strided;
    std::ranges::copy(extents, output.dims);
    std::ranges::copy(dense_strides(extents, 1), output.layout.strides);
    return output;
}

abi::logical_tensor scratchpad_of(std::size_t bytes) {
    abi::logical_tensor scratchpad{};
    scratchpad.id = SIZE_MAX; // which no tensor of a client has
    scratchpad.ndims = 1;
    scratchpad.dims[0] = static_cast<std::int64_t>(bytes);
    scratchpad.data_type = abi::type_u8;
    scratchpad.property = abi::property_variable;
    scratchpad.layout_type = abi::layout_strided;
    scratchpad.layout.strides[0] = 1;
    return scratchpad;
}

assembly::assembly(partition_kind kind, const row_region& region, const compile_call& call)
    : region_(region), parts_(kind, call) {
    parts_.output_ids = region.output_ids;
    require_outputs(region, parts_.outputs);
    std::vector<abi::logical_tensor> read;
    for (std::size_t i = 0; i < parts_.inputs.size(); ++i) {
        const auto& input = parts_.inputs[i];
        if (graph::makes(region.ops, input.id) || !graph::reads(region.ops, input.id)) continue;
        read.push_back(input);
        if (find(input.id) == nullptr) values_[input.id] = {input, parts_.input_at(i)};
    }
    require_types(region, read);
    require_types(region, parts_.outputs);
}

const abi::logical_tensor* assembly::find(std::size_t id) const {
    const auto found = values_.find(id);
    return found == values_.end() ? nullptr : &found->second.tensor;
}

const assembly::value& assembly::find_value(std::size_t id) const {
    const auto found = values_.find(id);
    if (found == values_.end())
        throw argument_error("tensor " + std::to_string(id) +
                             " is neither in the list given to compile nor made before");
    return found->second;
}

const abi::logical_tensor& assembly::known(std::size_t id) const {
    return find_value(id).tensor;
}

place assembly::place_of(std::size_t id) const {
    return find_value(id).at;
}

source assembly::source_of(std::size_t id) const {
    const auto& [tensor, at] = find_value(id);
    return {at, graph::is_one_element(from_abi(tensor))};
}

abi::logical_tensor assembly::wanted(std::size_t id) const {
    if (parts_.makes(id)) return *find_by_id(parts_.outputs, id);
    for (const auto& op : region_.records)
        if (const auto* output = find_by_id(op->outputs, id)) {
            auto recorded = *output;
            recorded.layout_type = abi::layout_any;
            return recorded;
        }
    throw argument_error("tensor " + std::to_string(id) + " is not made in the partition");
}

place assembly::add(const abi::logical_tensor& made) {
    if (!parts_.makes(made.id)) return (values_[made.id] = {made, add_inner(made)}).at;
    const auto output = std::ranges::find(parts_.outputs, made.id, &abi::logical_tensor::id);
    *output = made;
    const auto position = static_cast<std::size_t>(output - parts_.outputs.begin());
    return (values_[made.id] = {made, parts_.output_at(position)}).at;
}

place assembly::add_inner(const abi::logical_tensor& tensor) {
    parts_.inner.push_back({tensor, parts_.inner_bytes});
    parts_.inner_bytes += bytes_of(tensor);
    return {place::list::inner, parts_.inner.size() - 1};
}

// Left to the library, it would be allocated in every execution, and above 128 KiB every page of it
// touched for the first time.
place assembly::scratchpad(std::size_t bytes) {
    if (!scratchpad_) {
        scratchpad_ = parts_.inner.size();
        parts_.inner.emplace_back();
    }
    scratchpad_bytes_ = std::max(scratchpad_bytes_, bytes);
    return {place::list::inner, *scratchpad_};
}

// Rows between parts of oneDNN's are run in place where their type does not change.
place assembly::add_result(const fusion::block& block, const abi::logical_tensor& result) {
    if (!block.attention && !parts_.makes(result.id)) {
        const auto& [scores, at] = find_value(block.rows.scores);
        if (at.in == place::list::inner && lie_alike(from_abi(scores), from_abi(result)) &&
            scores.data_type == result.data_type) {
            parts_.inner.push_back({result, parts_.inner[at.position].offset_bytes});
            return (values_[result.id] = {result, {at.in, parts_.inner.size() - 1}}).at;
        }
    }
    return add(result);
}

std::shared_ptr<const fusion::compiled_block>
assembly::add_block(const fusion::block& block, attention_order order, std::string ending) {
    std::vector<tensor_desc> inputs;
    std::vector<source> sources;
    for (const std::size_t id : block.inputs()) {
        inputs.push_back(to_input_desc(from_abi(known(id))));
        sources.push_back(source_of(id));
    }
    const auto result = wanted(block.result());
    fusion::block_outputs outputs{output_desc(result), {}, order};
    std::optional<abi::logical_tensor> statistics;
    if (const auto& made = block.rows.statistics) {
        statistics = wanted(made->id);
        outputs.statistics = output_desc(*statistics);
    }
    auto compiled = fusion::compile(block, inputs, outputs);
    block_segment::outputs to{add_result(block, completed(result, compiled->dst())), {}};
    if (statistics) to.statistics = add(completed(*statistics, compiled->statistics()));
    parts_.inplace = find_inplace(block);
    add(std::make_unique<block_segment>(compiled, std::move(sources), to, std::move(ending)));
    return compiled;
}

// Where rows are all there is: the scores may be overwritten by a result of their layout.
std::optional<abi::inplace_pair> assembly::find_inplace(const fusion::block& block) const {
    const auto& rows = block.rows;
    if (block.attention || !parts_.segments.empty()) return std::nullopt;
    const auto &scores = known(rows.scores), &result = known(rows.result);
    const bool is_operand = std::ranges::any_of(
        rows.operands, [&](const auto& operand) { return operand.id == rows.scores; });
    if (is_operand || place_of(rows.result).in != place::list::outputs ||
        scores.property == abi::property_constant || scores.data_type != result.data_type ||
        !graph::lie_alike(from_abi(scores), from_abi(result)))
        return std::nullopt;
    return abi::inplace_pair{scores.id, result.id};
}

std::unique_ptr<executable> assembly::finish() {
    for (const std::size_t id : region_.output_ids)
        if (find(id) == nullptr)
            throw argument_error("output " + std::to_string(id) + " does not leave its part");
    if (scratchpad_) {
        parts_.inner[*scratchpad_] = {scratchpad_of(scratchpad_bytes_), parts_.inner_bytes};
        parts_.inner_bytes += padded_bytes(scratchpad_bytes_);
    }
    if (parts_.inner_bytes > max_scratch_bytes)
        throw argument_error(std::to_string(parts_.inner_bytes) + " bytes of scratch are too many");
    return std::make_unique<executable>(std::move(parts_));
}

} // namespace maskwise::onednn
