#include "onednn/partition/compile_partition.hpp"

#include "onednn/library/guard.hpp"
#include "onednn/library/real_library.hpp"
#include "onednn/partition/compile_region.hpp"
#include "onednn/partition/report.hpp"
#include "onednn/partition/segments.hpp"
#include "onednn/record/client_settings.hpp"
#include "onednn/record/tables.hpp"

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <utility>

namespace maskwise::onednn {
namespace {

// Whether the real library reports this in-place pair, too. If not, Maskwise reports no pair,
// because the real library may execute the partition.
bool real_agrees_with_inplace(const compile_call& call, const abi::inplace_pair& wanted) {
    std::size_t count = 0;
    const abi::inplace_pair* pairs = nullptr;
    real_compiled_partition_get_inplace_ports(call.compiled_partition, &count, &pairs);
    return std::any_of(pairs, pairs + count, [&](const auto& pair) {
        return pair.input_id == wanted.input_id && pair.output_id == wanted.output_id;
    });
}

// A newer oneDNN may have functions that Maskwise does not export. Those functions need oneDNN's
// compiled partition, so oneDNN also compiles the Select, with the dst layout that Maskwise
// reports.
void compile_for_newer_functions(const compile_call& call, executable& select) {
    compile_by_onednn(call.partition, call.compiled_partition,
                      {select.inputs(), select.outputs(), call.engine});
    if (select.inplace() && !real_agrees_with_inplace(call, *select.inplace()))
        select.forbid_inplace();
}

// Makes oneDNN write its dump file, with the tensors as the client described them. Writes
// no dump if dst has an unknown shape, because oneDNN crashes on a strided dst without strides.
// Writes no dump if an input is a host scalar. oneDNN would throw, and its cache would keep a
// pointer into the partition, which the client will destroy.
void compile_for_dump(const compile_call& call, const compile_request& request,
                      const executable& select) {
    const auto is_open_dst = [&](const logical_tensor& output) {
        return select.makes(output.id) && !output.shape_known();
    };
    const auto is_host_scalar = [](const logical_tensor& input) {
        return input.property == graph::property_kind::host_scalar;
    };
    if (std::ranges::any_of(request.outputs, is_open_dst) ||
        std::ranges::any_of(request.inputs, is_host_scalar))
        return;
    guarded([&] { call_real_compile(call); });
}

std::unique_ptr<executable> compile_alone(const graph::op& op, const compile_request& request) {
    const auto select = graph::compile_select(op, request.inputs, request.outputs);
    const auto& ports = select.ports;
    executable_parts parts(partition_kind::select, request);
    parts.outputs[ports.dst] = select.dst;
    parts.output_ids = {select.dst.id};
    if (select.src_0_may_be_dst) parts.inplace = {parts.inputs[ports.src_0].id, select.dst.id};
    const auto source_at = [&](std::size_t position) {
        return source{parts.input_at(position), graph::is_one_element(request.inputs[position])};
    };
    parts.segments.push_back(std::make_unique<select_segment>(
        select, std::array{source_at(ports.cond), source_at(ports.src_0), source_at(ports.src_1)},
        parts.output_at(ports.dst)));
    return std::make_unique<executable>(std::move(parts));
}

// Returns null if the real library must compile the Select.
std::unique_ptr<executable> compile_form(const select_claim& form, std::size_t,
                                         const compile_call& call) {
    const auto request = read_request(call);
    // oneDNN computes some combinations of types that are outside the schema.
    if (form.real_supports &&
        !graph::types_fit_schema(form.select, request.inputs, request.outputs))
        return nullptr;
    auto compiled = compile_alone(form.select, request);
    if (real_is_newer_than_known())
        compile_for_newer_functions(call, *compiled);
    else if (subgraph_dump_wanted())
        compile_for_dump(call, request, *compiled);
    return compiled;
}

std::unique_ptr<executable> compile_form(const std::shared_ptr<const merged_group>& group,
                                         std::size_t partition, const compile_call& call) {
    return compile_merged_region(partition, group->region, read_request(call));
}

std::unique_ptr<executable> compile_form(const row_region& region, std::size_t partition,
                                         const compile_call& call) {
    if (real_is_newer_than_known()) return nullptr;
    if (subgraph_dump_wanted()) guarded([&] { leave_to_onednn(call); }); // oneDNN writes the file
    return compile_region(partition, region, read_request(call));
}

// Returns false if the real library must compile the partition.
bool compile_and_record(const partition_claim& claim, const compile_call& call) {
    const auto start = std::chrono::steady_clock::now();
    auto compiled = std::visit(
        [&](const auto& form) { return compile_form(form, claim.facts.id, call); }, claim.form);
    if (compiled == nullptr) return false;
    compiled->partition = claim.facts;
    report_compiled(*compiled, std::chrono::steady_clock::now() - start);
    tables().compiled.insert(call.compiled_partition, std::move(compiled));
    return true;
}

} // namespace

abi::status compile_partition(const partition_claim& claim, const compile_call& call) {
    if (has_nulls(call) || !is_cpu_engine(call.engine))
        return claim.is_visible() ? abi::invalid_arguments : leave_to_onednn(call);
    bool is_compiled = false;
    std::string reason;
    const auto status = guarded(reason, [&] {
        is_compiled = compile_and_record(claim, call);
        if (!is_compiled) reason = "types outside the schema, left to oneDNN";
    });
    if (is_compiled) return abi::success;
    if (!claim.is_visible()) return leave_to_onednn(call);
    guarded([&] {
        report_verdict("refuse", claim.facts.id, claim.facts.names,
                       "compile,status " + std::to_string(status) + ',' + reason);
    });
    return status == abi::success ? leave_to_onednn(call) : status;
}

abi::status leave_to_onednn(const compile_call& call) {
    const auto status = call_real_compile(call);
    if (status == abi::success) tables().compiled.erase(call.compiled_partition);
    return status;
}

} // namespace maskwise::onednn
