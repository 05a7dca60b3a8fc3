#include "attention_inputs.hpp"

#include <algorithm>

namespace maskwise::ort {
namespace {

constexpr input_slot onnx_inputs[] = {{role::query, "Q"},
                                      {role::key, "K"},
                                      {role::value, "V"},
                                      {role::mask, "attn_mask"},
                                      {role::past_key, "past_key"},
                                      {role::past_value, "past_value"},
                                      {role::lengths, "nonpad_kv_seqlen"}};
constexpr input_slot multi_head_inputs[] = {{role::query, "query"},
                                            {role::key, "key"},
                                            {role::value, "value"},
                                            {role::projection_bias, "bias"},
                                            {role::mask, "key_padding_mask"},
                                            {role::bias, "attention_bias"},
                                            {role::past_key, "past_key"},
                                            {role::past_value, "past_value"},
                                            {role::unsupported, "past_sequence_length"},
                                            {role::unsupported, "cache_indirection"}};
constexpr input_slot group_query_inputs[] = {{role::query, "query"},
                                             {role::key, "key"},
                                             {role::value, "value"},
                                             {role::past_key, "past_key"},
                                             {role::past_value, "past_value"},
                                             {role::lengths, "seqlens_k"},
                                             {role::total, "total_sequence_length"},
                                             {role::cosines, "cos_cache"},
                                             {role::sines, "sin_cache"},
                                             {role::positions, "position_ids"},
                                             {role::unsupported, "attention_bias"},
                                             {role::unsupported, "head_sink"}};

constexpr attention_operator operators[] = {
    {attention_kind::onnx, "Attention", "", 23, 24, "q_num_heads", "kv_num_heads", "is_causal",
     onnx_inputs},
    {attention_kind::multi_head, "MultiHeadAttention", microsoft_domain, 1, 1, "num_heads",
     "num_heads", "unidirectional", multi_head_inputs},
    {attention_kind::group_query, "GroupQueryAttention", microsoft_domain, 1, 1, "num_heads",
     "kv_num_heads", nullptr, group_query_inputs}};

bool has_output(const node& node, std::size_t index) {
    return index < node.outputs.size() && node.outputs[index]->is_given();
}

} // namespace

std::span<const attention_operator> attention_operators() {
    return operators;
}

const attention_operator* operator_of(const node& node) {
    const auto* const entry = std::ranges::find_if(operators, [&](const attention_operator& op) {
        return node.type == op.type && node.is_microsoft == (op.domain == microsoft_domain);
    });
    return entry == std::end(operators) ? nullptr : entry;
}

template <class Read>
void attention_inputs::read(const attention_operator& op, std::size_t count,
                            const Read& read_input) {
    for (const input_slot& slot : op.inputs)
        if (slot.used_as != role::unsupported)
            by_role[static_cast<std::size_t>(slot.used_as)].name = slot.name;
    for (std::size_t i = 0; i < count; ++i) {
        const bool is_listed = i < op.inputs.size();
        operand input = read_input(i);
        if (is_listed) input.name = op.inputs[i].name;
        if (is_listed && op.inputs[i].used_as != role::unsupported)
            by_role[static_cast<std::size_t>(op.inputs[i].used_as)] = input;
        else if (input.is_given && unsupported.empty())
            unsupported = is_listed ? input.name : "input number " + std::to_string(i);
    }
}

attention_inputs::attention_inputs(const attention_operator& op, const node& node)
    : has_present(has_output(node, 1) && has_output(node, 2)), has_scores(has_output(node, 3)) {
    read(op, node.inputs.size(), [&](std::size_t i) {
        const value& value = node.input(i);
        return operand{{}, value.is_given(), value.type, value.extents};
    });
}

attention_inputs::attention_inputs(const attention_operator& op, const kernel_context& context) {
    read(op, op.inputs.size(), [&](std::size_t i) {
        const input_tensor tensor = context.optional_input(i);
        return operand{
            {}, tensor.value != nullptr, tensor.desc.type, tensor.desc.extents, tensor.data};
    });
}

} // namespace maskwise::ort
