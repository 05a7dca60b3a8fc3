// Three definitions of Select through Maskwise's C++ API: oneDNN's Select, OpenVINO's Select-1 and
// ONNX's Where-16.
#include <maskwise/maskwise.hpp>

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

using namespace maskwise;
using enum data_type;

template <class T>
void print(const char* name, const std::vector<T>& values) {
    std::cout << name << ':';
    for (const T& value : values) std::cout << ' ' << value;
    std::cout << '\n';
}

// cond has one element per column and src_1 is one fill value. cond and src_1 broadcast to {2,4}.
void onednn() {
    const plan select =
        compile(dialect::onednn_select,
                {.cond = {boolean, {1, 4}}, .src_0 = {f32, {2, 4}}, .src_1 = {f32, {}}});
    const bool keep[] = {true, false, true, false};
    const float scores[] = {1, 2, 3, 4, 5, 6, 7, 8}, masked = -1e9f;
    std::vector<float> dst(8);
    select.execute({.cond = keep, .src_0 = scores, .src_1 = &masked}, dst.data());
    print("oneDNN Select", dst);
}

// The example in the operator's specification.
void openvino() {
    const tensor_desc values{i32, {3, 2}};
    const plan select = compile(dialect::openvino_select_1,
                                {.cond = {boolean, {3, 2}}, .src_0 = values, .src_1 = values});
    const bool cond[] = {false, false, true, false, true, true};
    const std::int32_t then_values[] = {-1, 0, 1, 2, 3, 4}, else_values[] = {11, 10, 9, 8, 7, 6};
    std::vector<std::int32_t> dst(6);
    select.execute({.cond = cond, .src_0 = then_values, .src_1 = else_values}, dst.data());
    print("OpenVINO Select-1", dst);
}

// The condition enlarges the result. X is read backwards without a copy. Elements are strings.
void onnx() {
    constexpr std::int64_t step = sizeof(std::string);
    const plan where = compile(
        dialect::onnx_where_16,
        {.cond = {boolean, {2, 1}}, .src_0 = {string, {3}, {-step}}, .src_1 = {string, {}}});
    const bool condition[] = {true, false};
    const std::string x[] = {"c", "b", "a"}, y = "none";
    std::vector<std::string> dst(6); // where.dst() is {2,3}
    where.execute({.cond = condition, .src_0 = &x[2], .src_1 = &y}, dst.data());
    print("ONNX Where-16", dst);
}

// An error's text names the problem.
void refusal() {
    try {
        compile(dialect::openvino_select_1,
                {.cond = {boolean, {2, 3}}, .src_0 = {f32, {3}}, .src_1 = {f32, {}}});
    } catch (const shape_error& error) {
        std::cout << "refused: " << error.what() << '\n';
    }
}

int main() {
    onednn();
    openvino();
    onnx();
    refusal();
}
