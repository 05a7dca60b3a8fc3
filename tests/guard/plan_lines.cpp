// Prints the plans of all Selects in the shape table and the batch files, for 32-bit and 16-bit
// elements, without repetitions. guard.py compares the lines with plans.txt. Both widths share a
// line if their plans differ only in the kernel's width. The instruction set and the streaming
// threshold are fixed, so the lines depend only on the machine's L1 cache size.
//   plan_lines <shape table> <batch file>...

#include "input/case_reader.hpp"
#include "input/command_line.hpp"
#include "input/rewrite.hpp"
#include "input/rewrite_text.hpp"
#include "model/infer_shapes.hpp"
#include "plan/select_plan.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

namespace maskwise {
namespace {

constexpr isa planned_isa = isa::avx512;
constexpr std::int64_t planned_stream_bytes = 24 << 20;

// Plans of one combination of operands, by element width in bits.
struct planned {
    std::string operands;
    std::map<std::string, std::string> plans;
};
std::vector<planned> all_planned; // in order of appearance

std::string operand_text(const tensor_desc& tensor) {
    std::string text = to_string(tensor.extents);
    if (!(tensor == dense_desc(tensor.type, tensor.extents)))
        text.append("@").append(to_string(tensor.strides_bytes));
    return text;
}

std::string plan_of(const select_desc& desc) {
    try {
        return to_string(*build_plan(desc, planned_isa, planned_stream_bytes));
    } catch (const std::exception& refusal) {
        return std::string("refused: ") + refusal.what();
    }
}

void add_plan(const select_desc& desc) {
    const std::string text = operand_text(desc.cond) + ' ' + operand_text(desc.src_0) + ' ' +
                             operand_text(desc.src_1) + " -> " + operand_text(desc.dst);
    auto entry = std::ranges::find(all_planned, text, &planned::operands);
    if (entry == all_planned.end()) entry = all_planned.insert(entry, {text, {}});
    entry->plans.emplace(std::to_string(8 * width_bytes(desc.dst.type)), plan_of(desc));
}

// Replaces the kernel's width in a plan by a star.
std::string of_any_width(std::string plan, const std::string& width) {
    const std::string kernel = "kernel=select_x";
    if (const auto position = plan.find(kernel + width); position != std::string::npos)
        plan.replace(position, kernel.size() + width.size(), kernel + '*');
    return plan;
}

void print_plans(planned entry) {
    const std::string shared = of_any_width(entry.plans["32"], "32");
    if (shared == of_any_width(entry.plans["16"], "16")) {
        std::printf("32 and 16 bits %s: %s\n", entry.operands.c_str(), shared.c_str());
        return;
    }
    for (const char* width : {"32", "16"})
        if (const std::string& plan = entry.plans[width]; !plan.empty())
            std::printf("%s bits %s: %s\n", width, entry.operands.c_str(), plan.c_str());
}

data_type type_of_width(std::size_t width) {
    return width == 1 ? data_type::boolean : width == 2 ? data_type::bf16 : data_type::f32;
}

tensor_desc to_desc(const bench::logical_tensor& tensor) {
    const std::size_t width = bench::info(tensor.dtype).size;
    const auto strides =
        tensor.strides.empty() ? bench::dense_strides(tensor.shape) : tensor.strides;
    tensor_desc desc;
    desc.type = type_of_width(width);
    for (const std::int64_t extent : tensor.shape) desc.extents.push_back(extent);
    for (const std::int64_t stride : strides)
        desc.strides_bytes.push_back(stride * static_cast<std::int64_t>(width));
    return desc;
}

void add_batch(const std::string& batch, const std::string& program) {
    for (const bench::case_config& config :
         bench::parse_command_line({"--batch=" + batch}, program).cases) {
        bench::graph g = bench::read_case(config.file);
        bench::rewrite(g, config);
        g = bench::with_known_shapes(g);
        for (const bench::op& o : g.ops)
            if (o.kind == "Select" && o.outputs[0].is_known())
                add_plan({to_desc(o.inputs[0]), to_desc(o.inputs[1]), to_desc(o.inputs[2]),
                          to_desc(o.outputs[0])});
    }
}

// "2x3" is dense. "2x3*ba" also states the order of the dimensions in memory. "-" is a scalar.
bench::logical_tensor parse_operand(const std::string& text) {
    const bench::shape_text parsed = bench::parse_shapes("0:" + text).at(0).second;
    bench::logical_tensor tensor;
    tensor.shape = parsed.shape.value();
    tensor.strides = parsed.tag.empty() ? bench::dense_strides(tensor.shape)
                                        : bench::strides_of_tag(tensor.shape, parsed.tag);
    return tensor;
}

void add_shape(const std::string& cond, const std::string& src_0, const std::string& src_1,
               bench::data_type type) {
    bench::logical_tensor operands[] = {parse_operand(cond), parse_operand(src_0),
                                        parse_operand(src_1)};
    operands[0].dtype = bench::data_type::boolean;
    operands[1].dtype = operands[2].dtype = type;
    bench::logical_tensor dst = operands[2];
    dst.shape = bench::broadcast(operands[1].shape, operands[2].shape);
    const bench::dims shape = bench::broadcast(operands[0].shape, dst.shape);
    if (shape != dst.shape) { // cond enlarges the result, so src_1 is broadcast with strides 0
        operands[2].shape = dst.shape = shape;
        operands[2].strides.assign(shape.size(), 0);
    }
    dst.strides = bench::dense_strides(dst.shape);
    add_plan({to_desc(operands[0]), to_desc(operands[1]), to_desc(operands[2]), to_desc(dst)});
}

void add_shape_table(const std::string& path) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line[0] == '#') continue;
        std::istringstream words(line);
        std::string name, cond, src_0, src_1;
        words >> name >> cond >> src_0 >> src_1;
        for (const auto type : {bench::data_type::f32, bench::data_type::bf16})
            add_shape(cond, src_0, src_1, type);
    }
}

} // namespace
} // namespace maskwise

int main(int argc, char** argv) {
    try {
        maskwise::add_shape_table(argv[1]);
        for (int i = 2; i < argc; ++i) maskwise::add_batch(argv[i], argv[0]);
        for (const auto& entry : maskwise::all_planned) maskwise::print_plans(entry);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "plan_lines: %s\n", error.what());
        return 1;
    }
}
