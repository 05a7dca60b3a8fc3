#include "engine/attention.hpp"

#include "data/mask.hpp"
#include "input/rewrite_text.hpp"
#include "support/attention_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <ranges>

namespace maskwise::bench {
namespace {

using engine_type = maskwise::data_type;
enum attention_id : std::size_t { query, key, value, cond, bias, dst };

engine_type parse_type(const std::string& name) {
    for (int i = 0; i <= static_cast<int>(engine_type::string); ++i)
        if (to_string(static_cast<engine_type>(i)) == name) return static_cast<engine_type>(i);
    throw input_error(fmt::format("--dt: '{}' is not a type", name));
}

void require_id(std::size_t id, const char* flag) {
    if (id > dst)
        throw input_error(fmt::format("--{}: attention has no tensor {} (0 query, 1 key, 2 value, "
                                      "3 cond, 4 bias, 5 dst)",
                                      flag, id));
}

std::map<std::size_t, engine_type> parse_types(const std::string& text) {
    std::map<std::size_t, engine_type> types;
    if (text.find(':') == std::string::npos) {
        types[query] = parse_type(text.empty() ? "f32" : text);
        return types;
    }
    for (const auto& [id, name] : parse_pairs(text, "dt")) {
        require_id(id, "dt");
        types[id] = parse_type(name);
    }
    return types;
}

// Of the shape, or else of `otherwise`.
tensor_desc describe(const shape_text& text, const dims& otherwise, engine_type type) {
    const dims shape = text.shape.value_or(otherwise);
    dims strides = text.tag.empty() ? text.strides : strides_of_tag(shape, text.tag);
    for (std::int64_t& stride : strides) stride *= static_cast<std::int64_t>(width_bytes(type));
    return {type, maskwise::dims(std::span<const std::int64_t>(shape)),
            maskwise::dims(std::span<const std::int64_t>(strides))};
}

float parse_float(const std::string& name, const std::string& text) {
    float number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size())
        throw input_error(fmt::format("--op-attrs: {}: '{}' is not a number", name, text));
    return number;
}

bool parse_flag(const std::string& name, const std::string& text) {
    if (text != "true" && text != "false")
        throw input_error(fmt::format("--op-attrs: {}: '{}' is not true or false", name, text));
    return text == "true";
}

causal_boundary parse_causal(const std::string& text) {
    for (const auto boundary :
         {causal_boundary::none, causal_boundary::top_left, causal_boundary::bottom_right})
        if (to_string(boundary) == text) return boundary;
    throw input_error(
        fmt::format("--op-attrs: causal: '{}' is none of none, top_left, bottom_right", text));
}

struct attention_flag {
    std::string_view name;
    bool attention_desc::*member;
};
constexpr attention_flag flags[] = {
    {"inf_as_zero", &attention_desc::inf_as_zero},
    {"nan_as_zero", &attention_desc::nan_as_zero},
    {"cond_masks", &attention_desc::cond_masks},
    {"bias_on_fill", &attention_desc::bias_on_fill},
    {"grouped_queries", &attention_desc::grouped_queries},
};

void apply_attribute(const std::string& name, const std::string& text, attention_desc& desc) {
    const auto* const flag = std::ranges::find(flags, name, &attention_flag::name);
    if (flag != std::end(flags))
        desc.*flag->member = parse_flag(name, text);
    else if (name == "causal")
        desc.causal = parse_causal(text);
    else if (name == "scale")
        desc.scale = parse_float(name, text);
    else if (name == "soft_cap")
        desc.soft_cap = parse_float(name, text);
    else if (name == "fill")
        desc.fill = parse_float(name, text);
    else if (name == "statistics")
        desc.statistics.type = parse_flag(name, text) ? engine_type::f32 : engine_type::undef;
    else
        throw input_error(fmt::format(
            "--op-attrs: '{}' is none of causal, scale, soft_cap, fill, statistics, {}", name,
            fmt::join(std::views::transform(flags, &attention_flag::name), ", ")));
}

void apply_attributes(const std::string& text, attention_desc& desc) {
    for (const auto& [id, attributes] : parse_pairs(text, "op-attrs")) {
        if (id != 0) throw input_error(fmt::format("--op-attrs: attention is op 0, not {}", id));
        for (const std::string& one : split(attributes, '*')) {
            const std::size_t colon = one.find(':');
            if (colon == std::string::npos)
                throw input_error(fmt::format("--op-attrs: '{}' is not NAME:VALUE", one));
            apply_attribute(one.substr(0, colon), one.substr(colon + 1), desc);
        }
    }
}

dims extents_of(const tensor_desc& desc) {
    return {desc.extents.begin(), desc.extents.end()};
}

// What stands before the matrix, with query's heads where these are grouped.
dims outer_of(const tensor_desc& operand, const attention_desc& desc) {
    dims outer = extents_of(operand);
    if (outer.size() < 2) return {};
    outer.resize(outer.size() - 2);
    const dims whole = extents_of(desc.query);
    if (desc.grouped_queries && !outer.empty() && whole.size() > 2)
        outer.back() = whole[whole.size() - 3];
    return outer;
}

// Empty where the shapes do not fit.
dims result_shape(const attention_desc& desc) {
    const auto shape = test::broadcast(
        {outer_of(desc.query, desc), outer_of(desc.key, desc), outer_of(desc.value, desc)});
    if (!shape || desc.query.extents.rank() < 2 || desc.value.extents.rank() < 2) return {};
    dims result = *shape;
    result.push_back(desc.query.extents.end()[-2]);
    result.push_back(desc.value.extents.end()[-1]);
    return result;
}

void describe_outputs(const shape_text& text, engine_type type, attention_desc& desc) {
    const dims shape = result_shape(desc);
    const bool wants_statistics = desc.statistics.type != engine_type::undef;
    desc.statistics = {};
    if (shape.empty()) return;
    desc.dst = describe(text, shape, type);
    if (wants_statistics)
        desc.statistics = describe({}, {shape.begin(), shape.end() - 1}, engine_type::f32);
}

void put(test::attention_tensor& tensor, const tensor_desc& desc, edge where) {
    if (desc.type == engine_type::undef) return;
    const auto width = static_cast<std::int64_t>(width_bytes(desc.type));
    tensor.type = desc.type;
    tensor.at = test::dense_view(nullptr, extents_of(desc), width);
    if (!desc.strides_bytes.empty())
        tensor.at.strides_bytes = {desc.strides_bytes.begin(), desc.strides_bytes.end()};
    tensor.memory =
        test::guarded_buffer(static_cast<std::size_t>(test::span_bytes(tensor.at, width)), where);
    std::ranges::fill(tensor.memory.bytes(), std::byte{0x5a});
    tensor.at.data = tensor.memory.data();
    if (tensor.memory.size() > 0) tensor.at.data += test::bytes_below(tensor.at);
}

void fill_numbers(test::attention_tensor& tensor, std::uint64_t seed) {
    if (!tensor.exists()) return;
    test::generator random(seed);
    std::normal_distribution<double> normal;
    std::vector<double> numbers(static_cast<std::size_t>(test::count_of(tensor.at.extents)));
    for (double& number : numbers) number = normal(random);
    tensor.fill(numbers);
}

void fill_cond(test::attention_tensor& tensor, const std::string& mask) {
    if (!tensor.exists()) return;
    const dims& shape = tensor.at.extents;
    const bool has_rows = shape.size() > 1 && shape[shape.size() - 2] != 1;
    const auto made =
        make_mask(mask == "auto" ? (has_rows ? "causal" : "padding") : mask, shape, true, cond);
    std::vector<double> bytes;
    for (const std::byte one : made.bytes) bytes.push_back(std::to_integer<int>(one));
    tensor.fill(bytes);
}

// Key has query's shape where none is said, value key's. dst is row-major and of query's type; it
// and statistics are left out where the shapes do not fit, which the library refuses. Throws
// input_error for what cannot be read.
attention_desc describe_attention(const case_config& config) {
    std::map<std::size_t, shape_text> shapes;
    for (auto& [id, text] : parse_shapes(config.in_shapes)) {
        require_id(id, "in-shapes");
        shapes[id] = text;
    }
    if (!shapes[query].shape) throw input_error("--in-shapes: query, tensor 0, has no shape");
    if (config.mask != "auto" && !shapes[cond].shape)
        throw input_error(fmt::format("--mask={}: tensor 3, cond, is missing", config.mask));
    auto types = parse_types(config.dt);
    const auto type_of = [&](std::size_t id) {
        return types.contains(id) ? types[id] : types.at(query);
    };
    if (!types.contains(query)) throw input_error("--dt: query, tensor 0, has no type");
    attention_desc desc;
    apply_attributes(config.op_attrs, desc);
    desc.query = describe(shapes[query], {}, type_of(query));
    desc.key = describe(shapes[key], extents_of(desc.query), type_of(key));
    desc.value = describe(shapes[value], extents_of(desc.key), type_of(value));
    if (shapes[cond].shape)
        desc.cond =
            describe(shapes[cond], {}, types.contains(cond) ? types[cond] : engine_type::boolean);
    if (shapes[bias].shape) desc.bias = describe(shapes[bias], {}, type_of(bias));
    describe_outputs(shapes[dst], type_of(dst), desc);
    return desc;
}

// In memory against that edge of their pages, inputs filled.
test::attention_case make_attention(const case_config& config, const attention_desc& desc,
                                    edge where) {
    test::attention_case made;
    made.desc = desc;
    put(made.query, desc.query, where);
    put(made.key, desc.key, where);
    put(made.value, desc.value, where);
    put(made.cond, desc.cond, where);
    put(made.bias, desc.bias, where);
    put(made.dst, desc.dst, where);
    put(made.statistics, desc.statistics, where);
    fill_numbers(made.query, query);
    fill_numbers(made.key, key);
    fill_numbers(made.value, value);
    fill_numbers(made.bias, bias);
    fill_cond(made.cond, config.mask);
    return made;
}

using clock = std::chrono::steady_clock;

double ms_since(clock::time_point start) {
    return std::chrono::duration<double, std::milli>(clock::now() - start).count();
}

// By the name of oneDNN's status for the same.
void judge(case_result& result, const case_config& config, verdict otherwise, const char* status,
           const std::string& text) {
    result.state = config.expect.empty() ? otherwise : verdict::failed;
    if (config.expect == status) {
        result.state = verdict::passed;
        return;
    }
    const std::string answer = fmt::format("compile answered {}: {}", status, text);
    result.reason =
        config.expect.empty() ? answer : fmt::format("expected {}, but {}", config.expect, answer);
}

void check(const attention_plan& plan, const case_config& config, const attention_desc& desc,
           case_result& result) {
    const test::attention_case what = make_attention(config, desc, edge::back);
    const test::input_memory inputs = test::copy_inputs(what);
    const test::output_memory before = test::copy_outputs(what);
    plan.execute(what.operands());
    const test::wanted_attention wanted = test::expected(what);
    result.total = wanted.dst.size() + wanted.statistics.size();
    result.reason = test::compare(what, wanted, before);
    if (test::copy_inputs(what) != inputs) result.reason += " an input was written";
    if (!result.reason.empty()) result.state = verdict::failed;
}

void measure(const attention_plan& plan, const case_config& config, const attention_desc& desc,
             timed_calls& timed, case_result& result) {
    const auto what =
        std::make_shared<test::attention_case>(make_attention(config, desc, edge::front));
    std::vector<std::span<const std::byte>> memory;
    std::size_t bytes = 0;
    for (const auto* tensor : {&what->query, &what->key, &what->value, &what->cond, &what->bias,
                               &what->dst, &what->statistics}) {
        memory.emplace_back(tensor->memory.bytes());
        bytes += tensor->memory.size();
    }
    timed.run = [plan, what] { plan.execute(what->operands()); };
    timed.wait = [] {};
    timed.evict = [memory] {
        for (const auto& one : memory) drop_from_caches(one);
    };
    warm_up(timed);
    result.perf = summarize(
        take_samples(timed, config.fix_times_per_prb, config.max_ms_per_prb, config.cold_cache),
        bytes);
}

void run(const case_config& config, const attention_desc& desc, int verbose, timed_calls& timed,
         case_result& result) {
    const auto start = clock::now();
    const attention_plan plan = compile(desc);
    result.compile_ms = ms_since(start);
    if (verbose >= 3) fmt::print("{}\n", explain(plan));
    result.state = verdict::failed;
    if (!config.expect.empty() && config.expect != "success") {
        result.reason = fmt::format("expected {}, but it was compiled", config.expect);
    } else if (plan.dst().extents != desc.dst.extents) {
        result.reason = fmt::format("dst is {}", maskwise::to_string(plan.dst().extents));
    } else {
        result.state = verdict::passed;
        if (config.correctness) check(plan, config, desc, result);
        if (config.performance && result.state == verdict::passed)
            measure(plan, config, desc, timed, result);
    }
}

} // namespace

case_result run_attention_case(const case_config& config, int verbose, timed_calls& timed) {
    const auto start = clock::now();
    const attention_desc desc = describe_attention(config);
    case_result result;
    result.state = verdict::listed;
    try {
        if (!config.list_only) run(config, desc, verbose, timed, result);
    } catch (const shape_error& refusal) {
        judge(result, config, verdict::failed, "invalid_shape", refusal.what());
    } catch (const argument_error& refusal) {
        judge(result, config, verdict::invalid_arguments, "invalid_arguments", refusal.what());
    } catch (const std::bad_alloc&) {
        judge(result, config, verdict::failed, "out_of_memory", "out of memory");
    }
    result.wall_ms = ms_since(start);
    return result;
}

} // namespace maskwise::bench
