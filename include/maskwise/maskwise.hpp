// Maskwise: Select, dst = cond ? src_0 : src_1 with broadcasting, at memory speed on CPUs.
//
//   using namespace maskwise;
//   const plan select = compile(dialect::onnx_where_16, {.cond = {data_type::boolean, {4}},
//                                                        .src_0 = {data_type::f32, {3, 4}},
//                                                        .src_1 = {data_type::f32, {}}});
//   std::vector<float> dst(12);                        // select.dst() is f32 {3,4}, row-major
//   select.execute({.cond = keep, .src_0 = scores, .src_1 = &masked}, dst.data());
//
// C++20. Elements are moved, never computed with: NaN payloads and -0.0 stay as they are, any cond
// byte but 0 is true. Every function may be called from any thread. What can never be served throws
// one of the errors below; std::bad_alloc passes through.
//
// All names are in the inline namespace v1, so maskwise::plan is maskwise::v1::plan. Its number
// changes with the ABI: a program does not link with a library that it does not fit.
#pragma once

#include "maskwise/version.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#define MASKWISE_API __attribute__((visibility("default")))

namespace maskwise {

class select_plan; // the library's

inline namespace v1 {

// What is thrown; the text holds the offending values.
class MASKWISE_API error : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

// A type, attribute, layout, pointer or setting that can never be served.
class MASKWISE_API argument_error : public error {
    using error::error;
};

// Shapes that do not fit each other under the dialect's broadcast rule.
class MASKWISE_API shape_error : public error {
    using error::error;
};

// Type of an element. boolean is one byte; string is a std::string object, not characters.
enum class data_type : std::uint8_t {
    undef,
    boolean,
    i8,
    u8,
    i16,
    u16,
    f16,
    bf16,
    i32,
    u32,
    f32,
    i64,
    u64,
    f64,
    complex64,
    complex128,
    string,
};

// Bytes from one element to the next in a dense tensor; 0 for undef.
MASKWISE_API std::size_t width_bytes(data_type type);
// "f32", "boolean", ...; "undef" for anything else.
MASKWISE_API std::string_view to_string(data_type type);

inline constexpr int max_rank = 64;

// Extents or strides of one tensor, outermost first: at most max_rank numbers, else shape_error.
// Rank 0 is a scalar. Up to inline_rank numbers lie in the object, and nothing is allocated for
// them; of more all lie on the heap. One that was moved from is a scalar.
class dims {
public:
    static constexpr int inline_rank = 12;

    dims() noexcept {}
    dims(std::initializer_list<std::int64_t> values) : dims(values.begin(), values.size()) {}
    explicit dims(std::span<const std::int64_t> values) : dims(values.data(), values.size()) {}
    // `rank` times the same value.
    static dims filled(int rank, std::int64_t value) {
        dims made;
        made.reset(checked(rank));
        std::fill(made.begin(), made.end(), value);
        return made;
    }

    dims(const dims& other) { assign(other); }
    dims(dims&& other) noexcept { take(other); }
    dims& operator=(const dims& other) {
        if (this != &other) assign(other);
        return *this;
    }
    dims& operator=(dims&& other) noexcept {
        if (this != &other) take(other);
        return *this;
    }
    ~dims() = default;

    int rank() const { return rank_; }
    bool empty() const { return rank_ == 0; }
    void push_back(std::int64_t value) {
        const int next = checked(std::int64_t{rank_} + 1);
        if (next > inline_rank && !outside_) {
            auto numbers = std::make_unique_for_overwrite<std::int64_t[]>(max_rank);
            std::copy_n(inside_.data(), rank_, numbers.get());
            outside_ = std::move(numbers);
        }
        begin()[rank_] = value;
        rank_ = next;
    }

    std::int64_t& operator[](int i) { return begin()[i]; }
    std::int64_t operator[](int i) const { return begin()[i]; }
    std::int64_t* begin() { return outside_ ? outside_.get() : inside_.data(); }
    std::int64_t* end() { return begin() + rank_; }
    const std::int64_t* begin() const { return outside_ ? outside_.get() : inside_.data(); }
    const std::int64_t* end() const { return begin() + rank_; }

    friend bool operator==(const dims& a, const dims& b) {
        return std::equal(a.begin(), a.end(), b.begin(), b.end());
    }

private:
    dims(const std::int64_t* values, std::size_t rank) {
        reset(checked(static_cast<std::int64_t>(rank)));
        copy(values);
    }

    static int checked(std::int64_t rank) {
        if (rank < 0 || rank > max_rank)
            throw shape_error(std::to_string(rank) + " dimensions, expected 0 to " +
                              std::to_string(max_rank));
        return static_cast<int>(rank);
    }
    // The numbers have no value then.
    void reset(int rank) {
        if (rank > inline_rank && !outside_)
            outside_ = std::make_unique_for_overwrite<std::int64_t[]>(max_rank);
        rank_ = rank;
    }
    void assign(const dims& other) {
        reset(other.rank_);
        copy(other.begin());
    }
    void take(dims& other) noexcept {
        rank_ = std::exchange(other.rank_, 0);
        if (other.outside_)
            outside_ = std::move(other.outside_);
        else
            copy(other.inside_.data());
    }
    // A call of memmove takes longer than a few numbers.
    void copy(const std::int64_t* from) noexcept {
        std::int64_t* const to = begin();
        for (int i = 0; i < rank_; ++i) to[i] = from[i];
    }

    int rank_ = 0;
    std::array<std::int64_t, inline_rank> inside_; // only the first rank_ have a value
    std::unique_ptr<std::int64_t[]> outside_;      // room for max_rank, in place of inside_
};

// "{2,3,4}", "{}" for a scalar.
MASKWISE_API std::string to_string(const dims& values);

// How an operand lies in memory; owns no data. Strides are in bytes and one for each extent; left
// empty they mean row-major without gaps. Inputs may have any strides: 0 repeats an element, a
// negative one walks backwards from the address given to execute, which is that of element
// {0,...,0}, and need not be aligned (string apart: strides off its alignment are refused).
// Elements of dst may not overlap each other.
struct tensor_desc {
    data_type type = data_type::undef;
    dims extents;
    dims strides_bytes = {};

    friend bool operator==(const tensor_desc&, const tensor_desc&) = default;
};

// The operator by its definitions. They differ in types, in the names of the inputs (in the texts
// of errors; here always cond, src_0, src_1) and in the broadcast rule: in onnx_* all three inputs
// broadcast to each other, in the others src_0 and src_1 do, and cond then to the result only.
enum class dialect : std::uint8_t {
    onednn_select,     // f32, bf16, f16
    openvino_select_1, // all but complex64, complex128, string
    onnx_where_9,      // all but bf16
    onnx_where_16,     // all
};

// "onednn::Select", "openvino::Select-1", "onnx::Where-9", "onnx::Where-16".
MASKWISE_API std::string_view to_string(dialect form);

// Whether inputs of different shapes are expanded. none: all three shapes must be equal. ONNX has
// no such attribute and always expands: none is refused there.
enum class auto_broadcast : std::uint8_t { numpy, none };

// A Select by its operands. dst: dense and of the type of src_0 where undef.
struct select_desc {
    tensor_desc cond, src_0, src_1;
    tensor_desc dst = {};

    friend bool operator==(const select_desc&, const select_desc&) = default;
};

// The address of each operand's element {0,...,0}; memory stays the caller's.
struct select_inputs {
    const void* cond = nullptr;
    const void* src_0 = nullptr;
    const void* src_1 = nullptr;
};

// Threads of the caller's in place of oneTBB's: run(count, body) calls body(i) once for each i of
// [0, count), in any order, on up to `threads` threads, and returns when all calls have.
struct parallel_loop {
    int threads = 1;
    std::function<void(std::int64_t count, const std::function<void(std::int64_t)>& body)> run;
};

// A compiled Select: immutable, a pointer to shared data, so cheap to copy, and any number of
// threads may execute one at once.
class MASKWISE_API plan {
public:
    // Type, extents and strides of the result; lives as long as the plan.
    const tensor_desc& dst() const noexcept;

    // Writes dst = cond ? src_0 : src_1; `dst` is the address of its element {0,...,0}. It may be
    // exactly src_0 or src_1 where their descriptions are equal; where it overlaps an input in any
    // other way the result is undefined. Where dst has no element addresses may be null, else a
    // null one throws argument_error and nothing is written; so does a loop without threads or
    // function. Returns when dst is written. Large Selects use the caller's oneTBB task arena, or
    // the loop. Neither allocates nor locks by itself, throws nothing else but what copying a
    // std::string and the loop throw: then elements of dst hold their old or their new value.
    // Operands that are packed first take up to 160 KiB of the thread's stack.
    void execute(const select_inputs& at, void* dst) const;
    void execute(const select_inputs& at, void* dst, const parallel_loop& loop) const;

    // A move copies, and leaves a plan that works.
    plan(const plan&) = default;
    plan& operator=(const plan&) = default;

    // For the library.
    explicit plan(std::shared_ptr<const select_plan> data) noexcept;

private:
    friend MASKWISE_API std::string to_string(const plan& of);
    friend MASKWISE_API std::string explain(const plan& of);

    std::shared_ptr<const select_plan> data_;
};

// What plan::dst() of compile(form, desc, broadcast) is. Throws as that does for types, attributes
// and shapes, and makes no plan.
MASKWISE_API tensor_desc infer_dst(dialect form, select_desc desc,
                                   auto_broadcast broadcast = auto_broadcast::numpy);

// The plan for operands of these layouts. Plans are kept: compiling the same again is a look-up.
// Throws argument_error for types that the dialect does not have, for none where it has no
// auto_broadcast, for layouts that cannot be served and where MASKWISE_MAX_ISA is not an
// instruction set of this machine; shape_error for negative extents, shapes that do not
// broadcast, a dst of another shape, and sizes beyond 64 bits.
MASKWISE_API plan compile(dialect form, select_desc desc,
                          auto_broadcast broadcast = auto_broadcast::numpy);

// The plan in one line: loops, tile, how each operand is read, kernel, stores, instruction set. For
// people and logs; the words may change with any version.
MASKWISE_API std::string to_string(const plan& of);
// The same in words: a line for how each operand is read or written, the kernel, the threads it
// would use here and now.
MASKWISE_API std::string explain(const plan& of);

// "1.2.3" of the library that is loaded.
MASKWISE_API std::string_view version() noexcept;
// The instruction set that plans use: "scalar", "sse4", "avx2", "avx512", "amx" or "neon";
// capped by the environment's MASKWISE_MAX_ISA, and "neon_bf16" only if that names it. Throws
// argument_error if the name is none of this machine's.
MASKWISE_API std::string_view instruction_set();

} // namespace v1
} // namespace maskwise
