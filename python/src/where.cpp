#include "entries.hpp"

#include "call_key.hpp"
#include "output.hpp"

#include <memory>
#include <optional>

namespace maskwise::python {
namespace {

// NumPy's threshold: for fewer elements, releasing the GIL costs more than holding it.
constexpr npy_intp release_from_elements = 500;

plan find_plan(const request& call, nb::handle dst) {
    static recent_calls<plan> recent;
    call_key key;
    key.push(static_cast<npy_intp>(call.type));
    for (const nb::handle operand :
         {nb::handle(call.condition), nb::handle(call.x), nb::handle(call.y), dst})
        key.push_layout(operand);
    return recent.find(key, [&] {
        return compile(dialect::onnx_where_16,
                       {.cond = describe(call.condition, data_type::boolean),
                        .src_0 = describe(call.x, call.type),
                        .src_1 = describe(call.y, call.type),
                        .dst = describe(dst, call.type)});
    });
}

void run_plan(const request& call, nb::handle dst) {
    const plan select = find_plan(call, dst);
    const released_gil gil(PyArray_SIZE(as_array(dst)) >= release_from_elements);
    select.execute(
        {.cond = data_of(call.condition), .src_0 = data_of(call.x), .src_1 = data_of(call.y)},
        data_of(dst));
}

struct close_iterator {
    void operator()(NpyIter* iterator) const { NpyIter_Deallocate(iterator); }
};
using iterator_pointer = std::unique_ptr<NpyIter, close_iterator>;

// Iterates over dst, condition, x, y. NumPy casts operands of other dtypes into buffers.
iterator_pointer open_iterator(const request& call, nb::handle dst) {
    PyArrayObject* operands[] = {as_array(dst), as_array(call.condition), as_array(call.x),
                                 as_array(call.y)};
    npy_uint32 flags[] = {NPY_ITER_WRITEONLY | NPY_ITER_NO_BROADCAST, NPY_ITER_READONLY,
                          NPY_ITER_READONLY, NPY_ITER_READONLY};
    const nb::object boolean = new_reference(PyArray_DescrFromType(NPY_BOOL));
    PyArray_Descr* dtypes[] = {as_dtype(call.dtype), as_dtype(boolean), as_dtype(call.dtype),
                               as_dtype(call.dtype)};
    NpyIter* const iterator = NpyIter_AdvancedNew(
        4, operands,
        NPY_ITER_EXTERNAL_LOOP | NPY_ITER_BUFFERED | NPY_ITER_GROWINNER | NPY_ITER_ZEROSIZE_OK,
        NPY_KEEPORDER, NPY_UNSAFE_CASTING, flags, dtypes, -1, nullptr, nullptr, cast_elements);
    if (iterator == nullptr) throw nb::python_error();
    return iterator_pointer(iterator);
}

// The iterator returns the arrays in pieces: one-dimensional ranges with one stride per operand.
// Caches a piece's plan for the next pieces with the same layout.
class piece_plan {
public:
    explicit piece_plan(data_type type) : type_(type) {}

    const plan& find(npy_intp count, const npy_intp* strides) {
        if (!plan_ || count != count_ || !std::equal(strides, strides + 4, strides_)) {
            const auto row = [&](int operand, data_type type) {
                return tensor_desc{type, {count}, {strides[operand]}};
            };
            plan_ = compile(dialect::onnx_where_16, {.cond = row(1, data_type::boolean),
                                                     .src_0 = row(2, type_),
                                                     .src_1 = row(3, type_),
                                                     .dst = row(0, type_)});
            count_ = count;
            std::copy_n(strides, 4, strides_);
        }
        return *plan_;
    }

private:
    data_type type_;
    npy_intp count_ = 0;
    npy_intp strides_[4] = {};
    std::optional<plan> plan_;
};

// Refuses an `out` whose elements overlap. A piece has one dimension, so only a plan of the full
// array detects the overlap.
void require_apart(nb::handle out, data_type type) {
    compile(dialect::onnx_where_16, {.cond = describe(out, data_type::boolean),
                                     .src_0 = {type, {}},
                                     .src_1 = {type, {}},
                                     .dst = describe(out, type)});
}

void run_casting(const request& call, nb::handle dst) {
    if (PyArray_SIZE(as_array(dst)) == 0) return;
    const iterator_pointer iterator = open_iterator(call, dst);
    NpyIter_IterNextFunc* const next = NpyIter_GetIterNext(iterator.get(), nullptr);
    if (next == nullptr) throw nb::python_error();
    const npy_intp* const count = NpyIter_GetInnerLoopSizePtr(iterator.get());
    const npy_intp* const strides = NpyIter_GetInnerStrideArray(iterator.get());
    char* const* const data = NpyIter_GetDataPtrArray(iterator.get());
    piece_plan piece(call.type);
    {
        const released_gil gil(!NpyIter_IterationNeedsAPI(iterator.get()));
        do {
            const select_inputs inputs{.cond = data[1], .src_0 = data[2], .src_1 = data[3]};
            piece.find(*count, strides).execute(inputs, data[0]);
        } while (next(iterator.get()) != 0);
    }
    if (PyErr_Occurred() != nullptr) throw nb::python_error(); // a cast failed
}

} // namespace

nb::object run(const request& call, nb::handle out) {
    nb::object dst = nb::borrow<nb::object>(out);
    if (out.is_none())
        dst = allocate_output(call);
    else
        check_output(call, out);
    if (call.how == way::plan) {
        run_plan(call, dst);
    } else {
        if (!out.is_none()) require_apart(out, call.type);
        run_casting(call, dst);
    }
    return dst;
}

plan plan_of(const request& call) {
    return find_plan(call, allocate_output(call));
}

} // namespace maskwise::python
