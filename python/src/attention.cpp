#include "entries.hpp"

#include "call_key.hpp"
#include "output.hpp"
#include "torch_threads.hpp"

#include <maskwise/attention_gradients.hpp>

#include <nanobind/stl/string.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <utility>

namespace maskwise::python {
namespace {

data_type type_in(nb::handle array) {
    return type_of(PyArray_DESCR(as_array(array)));
}

void refuse_dtype(const char* name, nb::handle array, const char* expected, nb::handle query,
                  const char* hint = "") {
    refuse(PyExc_TypeError, "%s has dtype %S, expected %s%S%s", name,
           name_of(PyArray_DESCR(as_array(array))).ptr(), expected,
           name_of(PyArray_DESCR(as_array(query))).ptr(), hint);
}

void check_mask_type(const attention_call& call, data_type type) {
    const data_type mask = type_in(call.mask);
    if (mask == data_type::boolean || mask == data_type::f32 || mask == type) return;
    const char* const hint = call.on_torch ? ": .bool() keeps nonzero elements"
                                           : ": .astype(bool) keeps nonzero elements";
    refuse_dtype("attn_mask", call.mask, "bool, float32 or query's ", call.q,
                 PyArray_ISINTEGER(as_array(call.mask)) ? hint : "");
}

void check_types(const attention_call& call) {
    const data_type type = type_in(call.q);
    const char* const hint = call.on_torch ? ": .float()" : ": .astype('float32')";
    if (type != data_type::f32 && type != data_type::f16 && type != data_type::bf16)
        refuse(PyExc_TypeError, "query has dtype %S, expected float32, float16 or bfloat16%s",
               dtype_of(call.q).ptr(), type == data_type::f64 ? hint : "");
    if (type_in(call.k) != type) refuse_dtype("key", call.k, "query's ", call.q);
    if (type_in(call.v) != type) refuse_dtype("value", call.v, "query's ", call.q);
    if (!call.sinks.is_none() && type_in(call.sinks) != data_type::f32 &&
        type_in(call.sinks) != type)
        refuse_dtype("sinks", call.sinks, "float32 or query's ", call.q);
    if (!call.mask.is_none()) check_mask_type(call, type);
}

dims rows_of(const dims& extents) {
    return dims(std::span(extents.begin(), extents.end() - 1));
}

dims positions(int rank) {
    dims order = dims::filled(rank, 0);
    std::iota(order.begin(), order.end(), 0);
    return order;
}

// Returns a dense layout whose strides decrease in `order`. Strides cannot overflow, because
// infer_dst or compile checked a dense tensor of the same extents and type.
tensor_desc lay_out(data_type type, const dims& extents, const dims& order) {
    tensor_desc result{type, extents, extents};
    auto bytes = static_cast<std::int64_t>(width_bytes(type));
    for (int i = extents.rank() - 1; i >= 0; --i) {
        const int d = static_cast<int>(order[i]);
        result.strides_bytes[d] = bytes;
        bytes *= std::max<std::int64_t>(1, extents[d]);
    }
    return result;
}

// Columns are adjacent; the other dimensions have query's memory order. Broadcast dimensions are
// outermost.
tensor_desc lay_out_result(const tensor_desc& query, const dims& extents) {
    const int rank = extents.rank(), missing = rank - query.extents.rank();
    const auto step = [&](int d) {
        constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
        const std::int64_t bytes = d < missing ? 0 : query.strides_bytes[d - missing];
        return bytes == 0 ? most : std::abs(std::max(bytes, -most));
    };
    dims order = positions(rank);
    std::stable_sort(order.begin(), order.end() - 1, [&](std::int64_t a, std::int64_t b) {
        return step(static_cast<int>(a)) > step(static_cast<int>(b));
    });
    return lay_out(query.type, extents, order);
}

attention_desc describe_inputs(const attention_call& call) {
    const data_type type = type_in(call.q);
    attention_desc desc;
    desc.query = describe(call.q, type);
    desc.key = describe(call.k, type);
    desc.value = describe(call.v, type);
    if (call.scale) desc.scale = static_cast<float>(*call.scale);
    desc.soft_cap = static_cast<float>(call.soft_cap);
    desc.grouped_queries = call.enable_gqa;
    if (!call.sinks.is_none()) desc.sinks = describe(call.sinks, type_in(call.sinks));
    if (!call.page_table.is_none())
        desc.page_table = describe(call.page_table, type_in(call.page_table));
    return desc;
}

// Returns a hint if the mask's shape is (batch, keys), like a tokenizer's padding mask. A 2-D
// attn_mask is (rows, keys).
std::string hint_of_padding(const dims& mask, const dims& scores) {
    const int rank = scores.rank();
    if (rank < 3 || mask != dims{scores[0], scores[rank - 1]}) return "";
    std::string between;
    for (int i = 2; i < rank; ++i) between += ", None";
    return "; for a padding mask (batch, keys), pass attn_mask[:" + between + ", :]";
}

void add_mask(attention_desc& desc, nb::handle mask, dims scores) {
    const tensor_desc described = describe(mask, type_in(mask));
    scores[scores.rank() - 1] = desc.key.extents[desc.key.extents.rank() - 2];
    dims wide = scores;
    if (!widen(wide, mask) || wide != scores)
        throw shape_error("attn_mask of shape " + to_string(described.extents) +
                          " does not broadcast to the scores' shape " + to_string(scores) +
                          hint_of_padding(described.extents, scores));
    (described.type == data_type::boolean ? desc.cond : desc.bias) = described;
}

bool fits(const attention_desc& desc) {
    try {
        infer_dst(desc);
        return true;
    } catch (const error&) {
        return false;
    }
}

dims infer_extents(attention_desc desc) {
    try {
        return infer_dst(desc).extents;
    } catch (const shape_error& failure) {
        if (std::exchange(desc.grouped_queries, true) || !fits(desc)) throw;
        throw shape_error(std::string(failure.what()) + ": enable_gqa=True lets heads share keys");
    }
}

void check_out(const attention_call& call, const dims& extents) {
    check_array(call.out, extents, dtype_of(call.q));
    check_overlap(call.out, call.q, "query", false);
    check_overlap(call.out, call.k, "key", false);
    check_overlap(call.out, call.v, "value", false);
    check_overlap(call.out, call.mask, "attn_mask", false);
    check_overlap(call.out, call.sinks, "sinks", false);
}

attention_plan compile_for(const attention_call& call) {
    attention_desc desc = describe_inputs(call);
    const dims extents = infer_extents(desc);
    if (!call.mask.is_none()) add_mask(desc, call.mask, extents);
    desc.dst = lay_out_result(desc.query, extents);
    if (call.returns_statistics) desc.statistics = {data_type::f32, rows_of(extents)};
    if (call.deterministic) desc.order = attention_order::fixed;
    if (call.out.is_none()) return compile(desc);
    check_out(call, extents);
    desc.dst = describe(call.out, desc.query.type);
    return compile(desc);
}

call_key key_of(const attention_call& call) {
    call_key key;
    key.push(static_cast<npy_intp>(type_in(call.q)));
    key.push(static_cast<npy_intp>(call.mask.is_none() ? data_type::undef : type_in(call.mask)));
    key.push(static_cast<npy_intp>(call.sinks.is_none() ? data_type::undef : type_in(call.sinks)));
    key.push(call.enable_gqa ? 1 : 0);
    key.push(call.returns_statistics ? 1 : 0);
    key.push(call.deterministic ? 1 : 0);
    key.push(std::bit_cast<npy_intp>(call.soft_cap));
    key.push(call.scale ? 1 : 0);
    key.push(std::bit_cast<npy_intp>(call.scale.value_or(0)));
    for (const nb::handle array :
         {nb::handle(call.q), nb::handle(call.k), nb::handle(call.v), nb::handle(call.mask),
          nb::handle(call.sinks), nb::handle(call.out), nb::handle(call.page_table)})
        key.push_layout(array);
    return key;
}

attention_plan find_plan(const attention_call& call) {
    static recent_calls<attention_plan> recent;
    return recent.find(key_of(call), [&] { return compile_for(call); });
}

// Gradients of query, key and value have the operands' types and memory order. Gradients of bias
// and sinks are f32.
attention_gradients_plan compile_gradients(const gradients_call& gradients) {
    const attention_call& call = gradients.attention;
    attention_gradients_desc desc{describe_inputs(call)};
    attention_desc& attention = desc.attention;
    if (!call.mask.is_none()) add_mask(attention, call.mask, infer_extents(attention));
    attention.dst = describe(gradients.result, attention.query.type);
    attention.statistics = describe(gradients.statistics, data_type::f32);
    desc.dst_gradient = describe(gradients.gradient, attention.query.type);
    const auto sum = [](const tensor_desc& operand) -> tensor_desc {
        return {data_type::f32, operand.extents};
    };
    if (gradients.wants_mask) desc.bias_gradient = sum(attention.bias);
    if (gradients.wants_sinks) desc.sinks_gradient = sum(attention.sinks);
    const attention_gradients_desc whole = compile(desc).desc();
    desc.query_gradient = lay_out_result(attention.query, whole.query_gradient.extents);
    desc.key_gradient = lay_out_result(attention.key, whole.key_gradient.extents);
    desc.value_gradient = lay_out_result(attention.value, whole.value_gradient.extents);
    return compile(desc);
}

attention_gradients_plan find_gradients_plan(const gradients_call& gradients) {
    static recent_calls<attention_gradients_plan> recent;
    call_key key = key_of(gradients.attention);
    key.push(gradients.wants_mask ? 1 : 0);
    key.push(gradients.wants_sinks ? 1 : 0);
    for (const nb::object& array : {gradients.result, gradients.statistics, gradients.gradient})
        key.push_layout(array);
    return recent.find(key, [&] { return compile_gradients(gradients); });
}

// A result and the address of its elements.
struct allocation {
    nb::object owner;
    void* elements;
};

nb::handle torch_dtype(data_type type) {
    if (type == data_type::f32) return MASKWISE_IMPORTED("torch", "float32");
    if (type == data_type::f16) return MASKWISE_IMPORTED("torch", "float16");
    return MASKWISE_IMPORTED("torch", "bfloat16");
}

nb::object tuple_of(const dims& numbers, std::int64_t divisor) {
    nb::object tuple = new_reference(PyTuple_New(numbers.rank()));
    for (int i = 0; i < numbers.rank(); ++i)
        PyTuple_SetItem(tuple.ptr(), i,
                        new_reference(PyLong_FromLongLong(numbers[i] / divisor)).release().ptr());
    return tuple;
}

// Returns a tensor whose memory torch allocates, so that a program can resize the tensor.
allocation allocate_tensor(const tensor_desc& desc) {
    const auto width = static_cast<std::int64_t>(width_bytes(desc.type));
    const nb::handle empty = MASKWISE_IMPORTED("maskwise._torch_tensors", "empty");
    nb::object tensor = empty(tuple_of(desc.extents, 1), tuple_of(desc.strides_bytes, width),
                              torch_dtype(desc.type));
    return {tensor, data_of_tensor(tensor)};
}

// `desc` must have strides.
allocation allocate(const attention_call& call, const tensor_desc& desc) {
    if (call.on_torch) return allocate_tensor(desc);
    const bool is_like_query = desc.type == type_in(call.q);
    nb::object dtype =
        is_like_query ? dtype_of(call.q) : new_reference(PyArray_DescrFromType(NPY_FLOAT));
    nb::object array = new_reference(PyArray_NewFromDescr(
        &PyArray_Type, as_dtype(dtype.release()), desc.extents.rank(), desc.extents.begin(),
        desc.strides_bytes.begin(), nullptr, 0, nullptr));
    return {array, data_of(array)};
}

// Returns the inputs' addresses, the maps and the rules. Throws if the rules' slopes and dst differ
// in the number of heads.
attention_operands inputs_of(const attention_call& call, const dims& dst) {
    attention_operands operands{
        .query = data_of(call.q), .key = data_of(call.k), .value = data_of(call.v)};
    if (!call.mask.is_none())
        (type_in(call.mask) == data_type::boolean ? operands.cond : operands.bias) =
            data_of(call.mask);
    if (!call.sinks.is_none()) operands.sinks = data_of(call.sinks);
    if (!call.page_table.is_none()) operands.page_table = data_of(call.page_table);
    operands.rules = call.rules;
    if (call.rules != nullptr)
        require_slope_heads(*call.rules, dst.rank() < 3 ? 1 : dst[dst.rank() - 3]);
    operands.maps = call.maps;
    return operands;
}

template <class Plan, class Operands>
void execute(const Plan& plan, const Operands& operands, bool on_torch) {
    const auto loop = on_torch ? torch_loop() : std::nullopt;
    if (loop)
        plan.execute(operands, *loop);
    else
        plan.execute(operands);
}

nb::object swap_rows_and_heads(nb::handle array) {
    return new_reference(PyArray_SwapAxes(as_array(array), 0, 1));
}

nb::object as_heads_first(nb::handle array, const char* name) {
    if (PyArray_NDIM(as_array(array)) != 3)
        refuse(PyExc_ValueError, "%s has shape %S, expected 3 dimensions", name,
               nb::object(array.attr("shape")).ptr());
    return swap_rows_and_heads(array);
}

// The core requires (heads, rows, depth).
attention_call unpacked(attention_call call) {
    call.is_packed = false;
    call.q = as_heads_first(call.q, "query");
    call.k = as_heads_first(call.k, "key");
    call.v = as_heads_first(call.v, "value");
    if (!call.out.is_none()) call.out = swap_rows_and_heads(call.out);
    return call;
}

nb::object attention_of_packed(const attention_call& call) {
    const nb::object results = attention(unpacked(call));
    const nb::object result = call.returns_statistics ? nb::object(results[0]) : results;
    nb::object packed = call.out.is_none() ? result.attr("swapaxes")(0, 1) : call.out;
    return call.returns_statistics ? nb::make_tuple(packed, results[1]) : packed;
}

} // namespace

nb::object attention(const attention_call& call) {
    if (call.is_packed) return attention_of_packed(call);
    check_types(call);
    const attention_plan plan = find_plan(call);
    if (!call.out.is_none()) check_out(call, plan.dst().extents);
    const allocation dst =
        call.out.is_none() ? allocate(call, plan.dst()) : allocation{call.out, data_of(call.out)};
    attention_operands operands = inputs_of(call, plan.dst().extents);
    operands.dst = dst.elements;
    allocation statistics{nb::none(), nullptr};
    if (call.returns_statistics) {
        const dims rows = rows_of(plan.dst().extents);
        statistics = allocate(call, lay_out(data_type::f32, rows, positions(rows.rank())));
        operands.statistics = statistics.elements;
    }
    {
        const released_gil gil(true);
        execute(plan, operands, call.on_torch);
    }
    return call.returns_statistics ? nb::make_tuple(dst.owner, statistics.owner) : dst.owner;
}

nb::object attention_gradients(const gradients_call& gradients) {
    const attention_call& call = gradients.attention;
    check_types(call);
    const attention_gradients_plan plan = find_gradients_plan(gradients);
    const attention_gradients_desc& desc = plan.desc();
    const auto make = [&](const tensor_desc& gradient) {
        return gradient.type == data_type::undef ? allocation{nb::none(), nullptr}
                                                 : allocate(call, gradient);
    };
    const allocation results[] = {make(desc.query_gradient), make(desc.key_gradient),
                                  make(desc.value_gradient), make(desc.bias_gradient),
                                  make(desc.sinks_gradient)};
    attention_gradients_operands operands{inputs_of(call, desc.attention.dst.extents),
                                          data_of(gradients.gradient),
                                          results[0].elements,
                                          results[1].elements,
                                          results[2].elements,
                                          results[3].elements,
                                          results[4].elements};
    operands.attention.dst = data_of(gradients.result);
    operands.attention.statistics = data_of(gradients.statistics);
    {
        const released_gil gil(true);
        execute(plan, operands, call.on_torch);
    }
    return nb::make_tuple(results[0].owner, results[1].owner, results[2].owner, results[3].owner,
                          results[4].owner);
}

nb::object explain_attention(const attention_call& call) {
    if (call.is_packed) return explain_attention(unpacked(call));
    check_types(call);
    const attention_plan plan = find_plan(call);
    const attention_operands operands = inputs_of(call, plan.dst().extents);
    tile_counts counts;
    {
        const released_gil gil(true);
        counts = plan.count_tiles(operands);
    }
    return nb::make_tuple(counts.all, counts.full, counts.mixed, counts.deferred, counts.skipped,
                          explain(plan));
}

} // namespace maskwise::python
