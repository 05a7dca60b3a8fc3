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
                                            {role::added, "bias"},
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
    {attention_kind::multi_head, "MultiHeadAttention", own_domain, 1, 1, "num_heads", "num_heads",
     "unidirectional", multi_head_inputs},
    {attention_kind::group_query, "GroupQueryAttention", own_domain, 1, 1, "num_heads",
     "kv_num_heads", nullptr, group_query_inputs}};

bool has_output(const node& of, std::size_t index) {
    return index < of.outputs.size() && of.outputs[index]->is_given();
}

} // namespace

std::span<const attention_operator> attention_operators() {
    return operators;
}

const attention_operator* operator_of(const node& of) {
    const auto* const found = std::ranges::find_if(operators, [&](const attention_operator& each) {
        return of.type == each.type && of.is_own == (each.domain == own_domain);
    });
    return found == std::end(operators) ? nullptr : found;
}

template <class Read>
void attention_inputs::read(const attention_operator& of, std::size_t count,
                            const Read& read_input) {
    for (const input_slot& slot : of.inputs)
        if (slot.as != role::unsupported) all[static_cast<std::size_t>(slot.as)].name = slot.name;
    for (std::size_t i = 0; i < count; ++i) {
        const bool is_listed = i < of.inputs.size();
        operand found = read_input(i);
        if (is_listed) found.name = of.inputs[i].name;
        if (is_listed && of.inputs[i].as != role::unsupported)
            all[static_cast<std::size_t>(of.inputs[i].as)] = found;
        else if (found.is_given && unsupported.empty())
            unsupported = is_listed ? found.name : "input number " + std::to_string(i);
    }
}

attention_inputs::attention_inputs(const attention_operator& of, const node& from)
    : has_present(has_output(from, 1) && has_output(from, 2)), has_scores(has_output(from, 3)) {
    read(of, from.inputs.size(), [&](std::size_t i) {
        const value& given = from.input(i);
        return operand{{}, given.is_given(), given.type, given.extents};
    });
}

attention_inputs::attention_inputs(const attention_operator& of, const call& from) {
    read(of, of.inputs.size(), [&](std::size_t i) {
        const input_tensor given = from.optional_input(i);
        return operand{
            {}, given.theirs != nullptr, given.desc.type, given.desc.extents, given.data};
    });
}

} // namespace maskwise::ort
