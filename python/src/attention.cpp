#include "entries.hpp"

#include "output.hpp"
#include "plan_memory.hpp"
#include "torch_threads.hpp"

#include <maskwise/attention.hpp>

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

bool is_on_torch(const attention_call& of) {
    return !of.torch_empty.is_none();
}

data_type type_in(nb::handle array) {
    return type_of(PyArray_DESCR(as_array(array)));
}

void refuse_dtype(const char* name, nb::handle array, const char* expected, nb::handle query,
                  const char* hint = "") {
    refuse(PyExc_TypeError, "%s has dtype %S, expected %s%S%s", name,
           name_of(PyArray_DESCR(as_array(array))).ptr(), expected,
           name_of(PyArray_DESCR(as_array(query))).ptr(), hint);
}

void check_mask_type(const attention_call& of, data_type type) {
    if (of.is_causal) throw nb::value_error("attn_mask and is_causal=True exclude each other");
    const data_type mask = type_in(of.mask);
    if (mask == data_type::boolean || mask == data_type::f32 || mask == type) return;
    const char* const hint =
        is_on_torch(of) ? ": .bool() keeps what is not 0" : ": .astype(bool) keeps what is not 0";
    refuse_dtype("attn_mask", of.mask, "bool, float32 or query's ", of.q,
                 PyArray_ISINTEGER(as_array(of.mask)) ? hint : "");
}

void check_types(const attention_call& of) {
    const data_type type = type_in(of.q);
    const char* const hint = is_on_torch(of) ? ": .float()" : ": .astype('float32')";
    if (type != data_type::f32 && type != data_type::f16 && type != data_type::bf16)
        refuse(PyExc_TypeError, "query has dtype %S, expected float32, float16 or bfloat16%s",
               dtype_of(of.q).ptr(), type == data_type::f64 ? hint : "");
    if (type_in(of.k) != type) refuse_dtype("key", of.k, "query's ", of.q);
    if (type_in(of.v) != type) refuse_dtype("value", of.v, "query's ", of.q);
    if (!of.sinks.is_none() && type_in(of.sinks) != data_type::f32 && type_in(of.sinks) != type)
        refuse_dtype("sinks", of.sinks, "float32 or query's ", of.q);
    if (!of.mask.is_none()) check_mask_type(of, type);
}

// Without the last one.
dims rows_of(const dims& extents) {
    return dims(std::span(extents.begin(), extents.end() - 1));
}

dims positions(int rank) {
    dims order = dims::filled(rank, 0);
    std::iota(order.begin(), order.end(), 0);
    return order;
}

// Dimensions by decreasing strides. The dense dst that was inferred has the same product, so it
// stays within int64.
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

// Columns side by side, the dimensions before them in the order in which they lie in query: heads
// that are a transposed part of wider rows become such a part again. What is repeated comes first.
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

attention_desc describe_inputs(const attention_call& of) {
    const data_type type = type_in(of.q);
    attention_desc desc;
    desc.query = describe(of.q, type);
    desc.key = describe(of.k, type);
    desc.value = describe(of.v, type);
    desc.causal = of.is_causal ? causal_boundary::top_left : causal_boundary::none;
    if (of.scale) desc.scale = static_cast<float>(*of.scale);
    desc.soft_cap = static_cast<float>(of.soft_cap);
    desc.grouped_queries = of.enable_gqa;
    if (!of.sinks.is_none()) desc.sinks = describe(of.sinks, type_in(of.sinks));
    return desc;
}

// What a tokenizer gives, (batch, keys), broadcasts to (rows, keys), if at all.
std::string hint_of_padding(const dims& mask, const dims& scores) {
    const int rank = scores.rank();
    if (rank < 3 || mask != dims{scores[0], scores[rank - 1]}) return "";
    std::string between;
    for (int i = 2; i < rank; ++i) between += ", None";
    return ": padding is attn_mask[:" + between + ", :]";
}

void add_mask(attention_desc& desc, nb::handle mask, dims scores) {
    const tensor_desc given = describe(mask, type_in(mask));
    scores[scores.rank() - 1] = desc.key.extents[desc.key.extents.rank() - 2];
    dims wide = scores;
    if (!widen(wide, mask) || wide != scores)
        throw shape_error("attn_mask of shape " + to_string(given.extents) +
                          " does not broadcast to the scores' " + to_string(scores) +
                          hint_of_padding(given.extents, scores));
    (given.type == data_type::boolean ? desc.cond : desc.bias) = given;
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

void check_out(const attention_call& of, const dims& extents) {
    check_array(of.out, extents, dtype_of(of.q));
    check_overlap(of.out, of.q, "query", false);
    check_overlap(of.out, of.k, "key", false);
    check_overlap(of.out, of.v, "value", false);
    check_overlap(of.out, of.mask, "attn_mask", false);
    check_overlap(of.out, of.sinks, "sinks", false);
}

attention_plan compile_for(const attention_call& of) {
    attention_desc desc = describe_inputs(of);
    const dims extents = infer_extents(desc);
    if (!of.mask.is_none()) add_mask(desc, of.mask, extents);
    desc.dst = lay_out_result(desc.query, extents);
    if (of.returns_statistics) desc.statistics = {data_type::f32, rows_of(extents)};
    if (of.out.is_none()) return compile(desc);
    check_out(of, extents);
    desc.dst = describe(of.out, desc.query.type);
    return compile(desc);
}

attention_plan find_plan(const attention_call& of) {
    static plan_memory<attention_plan> recent;
    call_key key;
    key.push(static_cast<npy_intp>(type_in(of.q)));
    key.push(static_cast<npy_intp>(of.mask.is_none() ? data_type::undef : type_in(of.mask)));
    key.push(static_cast<npy_intp>(of.sinks.is_none() ? data_type::undef : type_in(of.sinks)));
    key.push(of.is_causal ? 1 : 0);
    key.push(of.enable_gqa ? 1 : 0);
    key.push(of.returns_statistics ? 1 : 0);
    key.push(std::bit_cast<npy_intp>(of.soft_cap));
    key.push(of.scale ? 1 : 0);
    key.push(std::bit_cast<npy_intp>(of.scale.value_or(0)));
    for (const nb::handle array : {of.q, of.k, of.v, of.mask, of.sinks, of.out})
        key.push_layout(array);
    return recent.find(key, [&] { return compile_for(of); });
}

// A result, and where its elements are.
struct allocation {
    nb::object owner;
    void* elements;
};

nb::object torch_dtype(data_type type) {
    const char* const name = type == data_type::f32   ? "float32"
                             : type == data_type::f16 ? "float16"
                                                      : "bfloat16";
    return nb::module_::import_("torch").attr(name);
}

// Torch's own memory: a result can be resized.
allocation allocate_tensor(const attention_call& of, const tensor_desc& desc) {
    nb::list extents, strides;
    const auto width = static_cast<std::int64_t>(width_bytes(desc.type));
    for (const std::int64_t extent : desc.extents) extents.append(extent);
    for (const std::int64_t bytes : desc.strides_bytes) strides.append(bytes / width);
    nb::object tensor = of.torch_empty(extents, strides, torch_dtype(desc.type));
    return {tensor, reinterpret_cast<void*>(nb::cast<std::uintptr_t>(tensor.attr("data_ptr")()))};
}

// `desc` has strides.
allocation allocate(const attention_call& of, const tensor_desc& desc) {
    if (is_on_torch(of)) return allocate_tensor(of, desc);
    const bool is_like_query = desc.type == type_in(of.q);
    nb::object dtype = is_like_query ? dtype_of(of.q) : own(PyArray_DescrFromType(NPY_FLOAT));
    nb::object array = own(PyArray_NewFromDescr(&PyArray_Type, as_dtype(dtype.release()),
                                                desc.extents.rank(), desc.extents.begin(),
                                                desc.strides_bytes.begin(), nullptr, 0, nullptr));
    return {array, data_of(array)};
}

// Without outputs.
attention_operands inputs_of(const attention_call& of) {
    attention_operands at{.query = data_of(of.q), .key = data_of(of.k), .value = data_of(of.v)};
    if (!of.mask.is_none())
        (type_in(of.mask) == data_type::boolean ? at.cond : at.bias) = data_of(of.mask);
    if (!of.sinks.is_none()) at.sinks = data_of(of.sinks);
    at.rules = of.rules;
    at.maps = of.maps;
    return at;
}

// Torch's threads are awake, so they pay sooner than oneTBB's.
bool is_worth_threads(const attention_call& of) {
    constexpr double least_products = 1 << 16;
    const double keys =
        static_cast<double>(PyArray_DIM(as_array(of.k), PyArray_NDIM(as_array(of.k)) - 2));
    return 2 * keys * static_cast<double>(PyArray_SIZE(as_array(of.q))) >= least_products;
}

void execute(const attention_plan& plan, const attention_operands& at, bool on_torch) {
    const auto loop = on_torch ? torch_loop() : std::nullopt;
    if (loop)
        plan.execute(at, *loop);
    else
        plan.execute(at);
}

} // namespace

nb::tuple attention(const attention_call& of) {
    check_types(of);
    const attention_plan plan = find_plan(of);
    if (!of.out.is_none()) check_out(of, plan.dst().extents);
    const allocation dst = of.out.is_none() ? allocate(of, plan.dst())
                                            : allocation{nb::borrow(of.out), data_of(of.out)};
    attention_operands at = inputs_of(of);
    at.dst = dst.elements;
    allocation statistics{nb::none(), nullptr};
    if (of.returns_statistics) {
        const dims rows = rows_of(plan.dst().extents);
        statistics = allocate(of, lay_out(data_type::f32, rows, positions(rows.rank())));
        at.statistics = statistics.elements;
    }
    {
        const released_gil gil(true);
        execute(plan, at, is_on_torch(of) && is_worth_threads(of));
    }
    return nb::make_tuple(dst.owner, statistics.owner);
}

nb::tuple explain_attention(const attention_call& of) {
    check_types(of);
    const attention_plan plan = find_plan(of);
    const attention_operands at = inputs_of(of);
    tile_counts counts;
    {
        const released_gil gil(true);
        counts = plan.count_tiles(at);
    }
    return nb::make_tuple(counts.all, counts.full, counts.mixed, counts.deferred, counts.skipped,
                          explain(plan));
}

} // namespace maskwise::python
