#include "client/execution.hpp"

#include "client/timing.hpp"
#include "data/strided.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace maskwise::bench {
namespace {

constexpr std::byte untouched{0x5a}; // fills a buffer before a tensor is written to it

std::size_t width_of(const dnnl_graph_logical_tensor_t& lt) {
    return info(static_cast<data_type>(lt.data_type)).size;
}

std::size_t byte_span(const dnnl_graph_logical_tensor_t& lt) {
    return span_elems(shape_of(lt), strides_of(lt)) * width_of(lt);
}

} // namespace

execution::execution(const program& p, const tensor_map& inputs, edge where, bool in_place)
    : program_(p) {
    for (const program_step& step : p.steps()) {
        add_inputs(step, inputs, where);
        add_outputs(step, where, in_place);
        bound_step& bound = steps_.emplace_back();
        bound.compiled = step.compiled.get();
        for (const auto& lt : step.inputs) bound.inputs.push_back(tensors_.at(lt.id).handle.get());
        for (const auto& lt : step.outputs)
            bound.outputs.push_back(tensors_.at(lt.id).handle.get());
        add_scratchpad(bound);
    }
    for (auto& [id, s] : tensors_) {
        const auto now = bytes_of(s);
        if (where == edge::back) s.before.assign(now.begin(), now.end());
    }
}

void execution::add_inputs(const program_step& step, const tensor_map& values, edge where) {
    for (const dnnl_graph_logical_tensor_t& lt : step.inputs) {
        if (tensors_.count(lt.id) > 0) continue;
        storage& s = tensors_[lt.id];
        s.lt = lt;
        s.buffer = guarded_buffer(byte_span(lt), where);
        std::ranges::fill(s.buffer.bytes(), untouched);
        scatter(values.at(lt.id), strides_of(lt), s.buffer.bytes());
        make_handle(s);
    }
}

void execution::add_outputs(const program_step& step, edge where, bool in_place) {
    for (const dnnl_graph_logical_tensor_t& lt : step.outputs) {
        storage& s = tensors_[lt.id];
        s.lt = lt;
        s.written = true;
        if (const auto input = in_place ? in_place_input(step, lt.id) : std::nullopt) {
            s.is_shared = true;
            s.shares = *input;
        } else {
            s.buffer = guarded_buffer(byte_span(lt), where);
            std::ranges::fill(s.buffer.bytes(), untouched);
        }
        make_handle(s);
    }
}

std::optional<std::size_t> execution::in_place_input(const program_step& step,
                                                     std::size_t output) const {
    std::size_t count = 0;
    const dnnl_graph_inplace_pair_t* pairs = nullptr;
    test::call("dnnl_graph_compiled_partition_get_inplace_ports", [&] {
        return dnnl_graph_compiled_partition_get_inplace_ports(step.compiled.get(), &count, &pairs);
    });
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t input = pairs[i].input_id;
        if (pairs[i].output_id == output && !tensors_.at(input).written && readers(input) == 1)
            return input;
    }
    return std::nullopt;
}

std::size_t execution::readers(std::size_t id) const {
    const auto& steps = program_.steps();
    return static_cast<std::size_t>(
        std::count_if(steps.begin(), steps.end(), [id](const program_step& step) {
            return std::any_of(step.inputs.begin(), step.inputs.end(),
                               [id](const auto& lt) { return lt.id == id; });
        }));
}

void execution::add_scratchpad(bound_step& step) {
    if (newer().get_scratchpad == nullptr) return;
    dnnl_graph_logical_tensor_t lt;
    test::call("dnnl_graph_compiled_partition_get_scratchpad_logical_tensor",
               [&] { return newer().get_scratchpad(step.compiled, &lt); });
    if (lt.dims[0] == 0) return;
    storage& s = scratchpads_.emplace_back();
    s.lt = lt;
    s.buffer = guarded_buffer(static_cast<std::size_t>(lt.dims[0]), edge::front);
    make_handle(s);
    step.scratchpad = s.handle.get();
}

void execution::make_handle(storage& s) {
    s.handle = test::tensor_at(s.lt, bytes_of(s).data());
}

std::span<std::byte> execution::bytes_of(const storage& s) const {
    return s.is_shared ? tensors_.at(s.shares).buffer.bytes() : s.buffer.bytes();
}

void execution::run() {
    for (bound_step& step : steps_)
        test::call("dnnl_graph_compiled_partition_execute", [&] {
            if (newer().execute)
                return newer().execute(step.compiled, test::cpu_stream(), step.inputs.size(),
                                       step.inputs.data(), step.outputs.size(), step.outputs.data(),
                                       step.scratchpad);
            return dnnl_graph_compiled_partition_execute(step.compiled, test::cpu_stream(),
                                                         step.inputs.size(), step.inputs.data(),
                                                         step.outputs.size(), step.outputs.data());
        });
}

void execution::wait() {
    test::call("dnnl_stream_wait", [] { return dnnl_stream_wait(test::cpu_stream()); });
}

tensor execution::value(std::size_t id) const {
    const storage& s = tensors_.at(id);
    return gather(static_cast<data_type>(s.lt.data_type), shape_of(s.lt), strides_of(s.lt),
                  bytes_of(s));
}

std::vector<std::size_t> execution::outputs() const {
    std::vector<std::size_t> ids;
    for (const program_step& step : program_.steps())
        for (const auto& lt : step.outputs) ids.push_back(lt.id);
    return ids;
}

std::string execution::damage_of(std::size_t id, const storage& s) const {
    if (!s.buffer.intact()) return fmt::format("bytes around tensor {} were written", id);
    const bool is_overwritten =
        std::any_of(tensors_.begin(), tensors_.end(), [id](const auto& other) {
            return other.second.is_shared && other.second.shares == id;
        });
    const auto now = bytes_of(s);
    if (s.is_shared || s.before.empty()) return "";
    if (!s.written && !is_overwritten && !std::equal(now.begin(), now.end(), s.before.begin()))
        return fmt::format("input {} was written", id);
    const std::size_t changed =
        changed_outside(now, s.before, shape_of(s.lt), strides_of(s.lt), width_of(s.lt));
    if (changed > 0)
        return fmt::format("{} bytes between the elements of tensor {} were written", changed, id);
    return "";
}

std::string execution::damage() const {
    for (const auto& [id, s] : tensors_)
        if (std::string text = damage_of(id, s); !text.empty()) return text;
    for (const storage& s : scratchpads_)
        if (!s.buffer.intact()) return "bytes around a scratchpad were written";
    return "";
}

std::size_t execution::bytes() const {
    std::size_t total = 0;
    const auto add = [&](const std::vector<dnnl_graph_logical_tensor_t>& ports) {
        std::vector<std::size_t> seen;
        for (const dnnl_graph_logical_tensor_t& lt : ports) {
            if (std::find(seen.begin(), seen.end(), lt.id) != seen.end()) continue;
            seen.push_back(lt.id);
            total += static_cast<std::size_t>(test::count_of(shape_of(lt))) * width_of(lt);
        }
    };
    for (const program_step& step : program_.steps()) {
        add(step.inputs);
        add(step.outputs);
    }
    return total;
}

void execution::evict() const {
    for (const auto& [id, s] : tensors_) drop_from_caches(s.buffer.bytes());
}

} // namespace maskwise::bench
