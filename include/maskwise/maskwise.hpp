// Maskwise: Select, dst = cond ? src_0 : src_1 with broadcasting, at memory bandwidth on CPUs.
//
//   using namespace maskwise;
//   const plan select = compile(dialect::onnx_where_16, {.cond = {data_type::boolean, {4}},
//                                                        .src_0 = {data_type::f32, {3, 4}},
//                                                        .src_1 = {data_type::f32, {}}});
//   std::vector<float> dst(12);                        // select.dst() is f32 {3,4}, row-major
//   select.execute({.cond = keep, .src_0 = scores, .src_1 = &masked}, dst.data());
//
// C++20. Elements are moved bit-exactly, including NaN payloads and -0.0. Any nonzero cond byte is
// true. All functions are thread-safe. Unsupported arguments throw one of the errors below.
// std::bad_alloc may also be thrown.
//
// The name of the inline namespace v1 changes with the ABI, so a program does not link with an
// incompatible library.
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

class select_plan; // internal

inline namespace v1 {

// Base of all errors. The text has the offending values.
class MASKWISE_API error : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

// An unsupported type, attribute, layout, pointer or setting.
class MASKWISE_API argument_error : public error {
    using error::error;
};

// Shapes that do not fit each other, negative extents, and sizes beyond the limits.
class MASKWISE_API shape_error : public error {
    using error::error;
};

// Element type. boolean is one byte. string is a std::string object.
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

// Bytes per element; 0 for undef.
MASKWISE_API std::size_t width_bytes(data_type type);
// "f32", "boolean", ...; "undef" for other values.
MASKWISE_API std::string_view to_string(data_type type);

inline constexpr int max_rank = 64;

// Extents or strides of one tensor, outermost first. More than max_rank numbers throw shape_error.
// Rank 0 is a scalar. Up to inline_rank numbers are stored in the object, more on the heap. A
// moved-from object is a scalar.
class dims {
public:
    static constexpr int inline_rank = 12;

    dims() noexcept {}
    dims(std::initializer_list<std::int64_t> values) : dims(values.begin(), values.size()) {}
    explicit dims(std::span<const std::int64_t> values) : dims(values.data(), values.size()) {}
    // `rank` copies of one value.
    static dims filled(int rank, std::int64_t value) {
        dims result;
        result.reset(checked(rank));
        std::fill(result.begin(), result.end(), value);
        return result;
    }

    dims(const dims& other) { assign(other); }
    dims(dims&& other) noexcept { move_from(other); }
    dims& operator=(const dims& other) {
        if (this != &other) assign(other);
        return *this;
    }
    dims& operator=(dims&& other) noexcept {
        if (this != &other) move_from(other);
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
    // Leaves the numbers uninitialized.
    void reset(int rank) {
        if (rank > inline_rank && !outside_)
            outside_ = std::make_unique_for_overwrite<std::int64_t[]>(max_rank);
        rank_ = rank;
    }
    void assign(const dims& other) {
        reset(other.rank_);
        copy(other.begin());
    }
    void move_from(dims& other) noexcept {
        rank_ = std::exchange(other.rank_, 0);
        if (other.outside_)
            outside_ = std::move(other.outside_);
        else
            copy(other.inside_.data());
    }
    // For a few numbers, a loop is faster than memmove.
    void copy(const std::int64_t* src) noexcept {
        std::int64_t* const dst = begin();
        for (int i = 0; i < rank_; ++i) dst[i] = src[i];
    }

    int rank_ = 0;
    std::array<std::int64_t, inline_rank> inside_; // only the first rank_ are initialized
    std::unique_ptr<std::int64_t[]> outside_;      // room for max_rank; replaces inside_
};

// "{2,3,4}", "{}" for a scalar.
MASKWISE_API std::string to_string(const dims& values);

// An operand's layout in memory; owns no data. Strides are in bytes, one per extent; empty means
// dense row-major. Inputs may have any strides: 0 repeats an element, and a negative stride walks
// backwards. execute takes the address of element {0,...,0}. Only strings need alignment. dst's
// elements must not overlap.
struct tensor_desc {
    data_type type = data_type::undef;
    dims extents;
    dims strides_bytes = {};

    friend bool operator==(const tensor_desc&, const tensor_desc&) = default;
};

// Definitions of the operator. Dialects differ in types, in the broadcast rule, and in the names of
// inputs in error texts. In onnx_*, all three inputs broadcast to each other. In the other
// dialects, src_0 and src_1 broadcast to each other, then cond broadcasts to the result.
enum class dialect : std::uint8_t {
    onednn_select,     // f32, bf16, f16
    openvino_select_1, // all but complex64, complex128, string
    onnx_where_9,      // all but bf16
    onnx_where_16,     // all
};

// "onednn::Select", "openvino::Select-1", "onnx::Where-9", "onnx::Where-16".
MASKWISE_API std::string_view to_string(dialect form);

// Whether inputs of different shapes broadcast. `none` requires three equal shapes; ONNX's dialects
// refuse `none`.
enum class auto_broadcast : std::uint8_t { numpy, none };

// The operands of a Select. An undef dst becomes dense, of src_0's type.
struct select_desc {
    tensor_desc cond, src_0, src_1;
    tensor_desc dst = {};

    friend bool operator==(const select_desc&, const select_desc&) = default;
};

// Addresses of the inputs' elements {0,...,0}. The caller owns the memory.
struct select_inputs {
    const void* cond = nullptr;
    const void* src_0 = nullptr;
    const void* src_1 = nullptr;
};

// Replaces oneTBB's threads by the caller's. run(count, body) must call body(i) once for each i in
// [0, count), in any order and on up to `threads` threads, and return after all calls have
// returned.
struct parallel_loop {
    int threads = 1;
    std::function<void(std::int64_t count, const std::function<void(std::int64_t)>& body)> run;
};

// A compiled Select. Immutable. Copies are cheap, because they share data. Threads may execute one
// plan concurrently.
class MASKWISE_API plan {
public:
    // Type, extents and strides of the result. The reference is valid as long as the plan.
    const tensor_desc& dst() const noexcept;

    // Writes dst = cond ? src_0 : src_1, and returns when dst is written. `dst` is the address of
    // element {0,...,0}. Large Selects run in the caller's oneTBB task arena, or in `loop`.
    // Overlap: dst may be src_0 or src_1 if their descriptions are equal. Any other overlap with an
    // input is undefined.
    // Errors: throws argument_error for a null address of an operand (unless dst is empty) and for
    // a loop without threads or function, before anything is written. An exception from the loop or
    // from copying a std::string passes through. Each element of dst then has its old or new value.
    // Resources: takes no lock and allocates only to copy strings. Packed operands use up to 160
    // KiB of stack per thread.
    void execute(const select_inputs& inputs, void* dst) const;
    void execute(const select_inputs& inputs, void* dst, const parallel_loop& loop) const;

    // A move is a copy: the source stays valid.
    plan(const plan&) = default;
    plan& operator=(const plan&) = default;

    // Internal.
    explicit plan(std::shared_ptr<const select_plan> data) noexcept;

private:
    friend MASKWISE_API std::string to_string(const plan& plan);
    friend MASKWISE_API std::string explain(const plan& plan);

    std::shared_ptr<const select_plan> data_;
};

// Returns compile(form, desc, broadcast).dst() without making a plan. Throws as compile does for
// types, attributes and shapes.
MASKWISE_API tensor_desc infer_dst(dialect form, select_desc desc,
                                   auto_broadcast broadcast = auto_broadcast::numpy);

// Returns the plan for operands of these layouts. Up to 1024 plans are cached; compiling a cached
// plan is a lookup. Throws argument_error for types and an auto_broadcast that the dialect lacks,
// for unsupported layouts, and if MASKWISE_MAX_ISA is not an instruction set of this machine.
// Throws shape_error for negative extents, shapes that do not broadcast, a dst of another shape,
// and sizes beyond 64 bits.
MASKWISE_API plan compile(dialect form, select_desc desc,
                          auto_broadcast broadcast = auto_broadcast::numpy);

// Describes the plan in one line: loops, tile, access of each operand, kernel, stores, instruction
// set. For people and logs: the text may change with any version.
MASKWISE_API std::string to_string(const plan& plan);
// Describes the plan in sentences: a line per operand for its access, one for the kernel, and one
// for the threads that an execution would use now.
MASKWISE_API std::string explain(const plan& plan);

// The version of the loaded library: "1.2.3".
MASKWISE_API std::string_view version() noexcept;
// The instruction set of all plans, chosen once per process: "scalar", "sse4", "avx2", "avx512",
// "amx", "neon" or "neon_bf16". The environment variable MASKWISE_MAX_ISA limits the choice,
// on x86 also ONEDNN_MAX_CPU_ISA. Only MASKWISE_MAX_ISA selects "neon_bf16". Throws argument_error
// if MASKWISE_MAX_ISA is not an instruction set of this machine.
MASKWISE_API std::string_view instruction_set();

} // namespace v1
} // namespace maskwise
