#include "onednn/region.hpp"

#include "base/verbose.hpp"
#include "onednn/claim.hpp"
#include "onednn/composite.hpp"
#include "onednn/described_anew.hpp"
#include "onednn/dump.hpp"
#include "onednn/guard.hpp"
#include "onednn/merge.hpp"
#include "onednn/onednn_verbose.hpp"
#include "onednn/real_library.hpp"
#include "onednn/real_partition.hpp"
#include "onednn/translate_op.hpp"

#include <algorithm>
#include <chrono>
#include <string>

namespace maskwise::onednn {
namespace {

void report(const char* what, std::size_t partition, const std::string& text) {
    if (verbose_level() < 1) return;
    guarded([&] {
        print_verbose(std::string(what) + ',' + std::to_string(partition) + ",composite," + text);
    });
}

// False where an operator of the partition was not recorded or none of them is a Select.
bool collect_ops(const graph_record& graph, abi::partition partition, region_record& region) {
    for (const std::size_t id : op_ids(partition)) {
        auto op = find_op(graph, id);
        if (!op) return false;
        region.ops.push_back(std::move(op));
    }
    return std::any_of(region.ops.begin(), region.ops.end(),
                       [](const auto& op) { return op->kind == abi::op_kind_select; });
}

// What verbose lines tell of the partition: its operators by name, as oneDNN joins them.
std::shared_ptr<const partition_record> label_of(const region_record& region) {
    auto label = std::make_shared<partition_record>();
    label->id = region.id;
    label->real_supports = true;
    label->fpmath_mode = region.settings.fpmath_mode;
    label->fpmath_applies_to_int = region.settings.fpmath_applies_to_int;
    label->select.name = joined_names(region.ops);
    return label;
}

std::unique_ptr<compiled_record> build(const region_record& region,
                                       std::shared_ptr<const partition_record> partition,
                                       const compile_call& call) {
    auto record = std::make_unique<compiled_record>();
    record->partition = std::move(partition);
    record->inputs = copy_tensors(call.in_num, call.inputs);
    record->outputs = copy_tensors(call.out_num, call.outputs);
    record->whole =
        std::make_shared<composite>(region, record->inputs, record->outputs, call.engine);
    record->outputs = record->whole->outputs();
    record->inplace = record->whole->inplace();
    return record;
}

// Measured in front of 3.7: there a mask that replaces the scores where it is true is arithmetic
// inside oneDNN's own kernels, and nothing is gained.
bool masks_by_arithmetic(const graph::row_chain& chain) {
    const auto replaces = [](const row_step& step) {
        const auto* select = std::get_if<row_select>(&step);
        return select != nullptr && select->op == row_operator::select_masked;
    };
    return !real().at_least(3, 8) && std::any_of(chain.steps.begin(), chain.steps.end(), replaces);
}

// Measured in front of 3.13: a mask that is not broadcast is no reference code there. Then a short
// chain gains less than cutting the partition in two costs (0.87 at 1 Mi elements, 1.0 at 4
// Mi, 1.13 at 16 Mi).
bool masks_element_by_element(const std::vector<graph::op>& ops, const graph::row_chain& chain) {
    constexpr std::size_t short_chain = 3;
    constexpr std::int64_t gains_from_elements = 4 << 20;
    if (!real().at_least(3, 8) || chain.length() > short_chain) return false;
    return std::any_of(ops.begin(), ops.end(), [&](const graph::op& op) {
        if (op.kind != graph::op_kind::select || chain.operands.empty()) return false;
        const auto &cond = op.inputs[0], &scores = op.inputs[1];
        const bool is_operand =
            std::any_of(chain.operands.begin(), chain.operands.end(),
                        [&cond](const auto& operand) { return operand.id == cond.id; });
        return is_operand && cond.shape_known() && cond.extents == scores.extents &&
               element_count(cond.extents) < gains_from_elements;
    });
}

} // namespace

void note_region(const graph_record& graph, abi::partition partition) {
    auto region = std::make_shared<region_record>();
    if (!collect_ops(graph, partition, *region)) return;
    region->settings = {graph.engine_kind, graph.fpmath_mode, graph.fpmath_applies_to_int};
    call_real(&real_library::partition_get_id, abi::const_partition(partition), &region->id);
    std::vector<graph::op> ops;
    for (const auto& op : region->ops) ops.push_back(translate(*op));
    region->output_ids = ids_of(output_ports(partition));
    std::string reason;
    auto chain = graph::find_row_chain(ops, region->output_ids, reason);
    if (chain && masks_by_arithmetic(*chain)) {
        chain.reset();
        reason = "this oneDNN is as fast with a mask that replaces scores";
    } else if (chain && masks_element_by_element(ops, *chain)) {
        chain.reset();
        reason = "this oneDNN is as fast with a mask of the scores' own shape";
    }
    if (!chain) return report("refuse", region->id, reason);
    region->chain = std::move(*chain);
    tables().regions.insert(partition, std::move(region));
}

abi::status compile_region(const std::shared_ptr<const region_record>& region,
                           const compile_call& call) {
    if (has_nulls(call) || !is_cpu_engine(call.engine)) return compile_by_real(call);
    if (real_is_newer_than_known()) return compile_by_real(call);
    if (subgraph_dump_wanted()) guarded([&] { compile_by_real(call); }); // writes the file
    const auto start = std::chrono::steady_clock::now();
    std::string text;
    const auto status = guarded(text, [&] {
        auto record = build(*region, label_of(*region), call);
        text = record->whole->describe();
        report_compiled(*record, std::chrono::steady_clock::now() - start);
        tables().compiled.insert(call.compiled_partition, std::move(record));
    });
    report(status == abi::success ? "claim" : "refuse", region->id, text);
    return status == abi::success ? status : compile_by_real(call);
}

// A merged partition has been promised for every layout: what rows cannot be run for is compiled
// by oneDNN, operator by operator.
std::unique_ptr<compiled_record>
build_merged_rows(const std::shared_ptr<const partition_record>& partition,
                  const compile_call& call) {
    const auto anew = described_anew(*partition->merged, call);
    const region_record& region = anew ? *anew : *partition->merged->rows;
    std::unique_ptr<compiled_record> record;
    std::string text;
    const auto status = guarded(text, [&] { record = build(region, partition, call); });
    if (status == abi::success) {
        report("claim", partition->id, record->whole->describe());
        return record;
    }
    report("refuse", partition->id, text);
    region_record without_rows = region;
    without_rows.chain = {};
    return build(without_rows, partition, call);
}

} // namespace maskwise::onednn
