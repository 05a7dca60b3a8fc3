#include "entries.hpp"

#include "output.hpp"
#include "plan_memory.hpp"

#include <memory>
#include <optional>

namespace maskwise::python {
namespace {

// As NumPy's: for fewer elements handing the GIL over costs more than holding it.
constexpr npy_intp release_from_elements = 500;

plan find_plan(const request& of, nb::handle dst) {
    static plan_memory<plan> recent;
    call_key key;
    key.push(static_cast<npy_intp>(of.type));
    for (const nb::handle operand :
         {nb::handle(of.condition), nb::handle(of.x), nb::handle(of.y), dst})
        key.push_layout(operand);
    return recent.find(key, [&] {
        return compile(dialect::onnx_where_16, {.cond = describe(of.condition, data_type::boolean),
                                                .src_0 = describe(of.x, of.type),
                                                .src_1 = describe(of.y, of.type),
                                                .dst = describe(dst, of.type)});
    });
}

void run_plan(const request& of, nb::handle dst) {
    const plan select = find_plan(of, dst);
    const released_gil gil(PyArray_SIZE(as_array(dst)) >= release_from_elements);
    select.execute({.cond = data_of(of.condition), .src_0 = data_of(of.x), .src_1 = data_of(of.y)},
                   data_of(dst));
}

struct close_iterator {
    void operator()(NpyIter* iterator) const { NpyIter_Deallocate(iterator); }
};
using iterator_pointer = std::unique_ptr<NpyIter, close_iterator>;

// dst, condition, x, y: NumPy casts whatever differs from these dtypes into buffers.
iterator_pointer open_iterator(const request& of, nb::handle dst) {
    PyArrayObject* operands[] = {as_array(dst), as_array(of.condition), as_array(of.x),
                                 as_array(of.y)};
    npy_uint32 flags[] = {NPY_ITER_WRITEONLY | NPY_ITER_NO_BROADCAST, NPY_ITER_READONLY,
                          NPY_ITER_READONLY, NPY_ITER_READONLY};
    const nb::object boolean = own(PyArray_DescrFromType(NPY_BOOL));
    PyArray_Descr* dtypes[] = {as_dtype(of.dtype), as_dtype(boolean), as_dtype(of.dtype),
                               as_dtype(of.dtype)};
    NpyIter* const iterator = NpyIter_AdvancedNew(
        4, operands,
        NPY_ITER_EXTERNAL_LOOP | NPY_ITER_BUFFERED | NPY_ITER_GROWINNER | NPY_ITER_ZEROSIZE_OK,
        NPY_KEEPORDER, NPY_UNSAFE_CASTING, flags, dtypes, -1, nullptr, nullptr, cast_elements);
    if (iterator == nullptr) throw nb::python_error();
    return iterator_pointer(iterator);
}

// The plan of one piece, kept while the pieces are alike.
class piece_plan {
public:
    explicit piece_plan(data_type type) : type_(type) {}

    const plan& of(npy_intp count, const npy_intp* strides) {
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

// The pieces are rows: whether elements of the whole lie on each other only its plan tells.
void require_apart(nb::handle out, data_type type) {
    compile(dialect::onnx_where_16, {.cond = describe(out, data_type::boolean),
                                     .src_0 = {type, {}},
                                     .src_1 = {type, {}},
                                     .dst = describe(out, type)});
}

void run_casting(const request& of, nb::handle dst) {
    if (PyArray_SIZE(as_array(dst)) == 0) return;
    const iterator_pointer iterator = open_iterator(of, dst);
    NpyIter_IterNextFunc* const next = NpyIter_GetIterNext(iterator.get(), nullptr);
    if (next == nullptr) throw nb::python_error();
    const npy_intp* const count = NpyIter_GetInnerLoopSizePtr(iterator.get());
    const npy_intp* const strides = NpyIter_GetInnerStrideArray(iterator.get());
    char* const* const at = NpyIter_GetDataPtrArray(iterator.get());
    piece_plan piece(of.type);
    {
        const released_gil gil(!NpyIter_IterationNeedsAPI(iterator.get()));
        do {
            const select_inputs inputs{.cond = at[1], .src_0 = at[2], .src_1 = at[3]};
            piece.of(*count, strides).execute(inputs, at[0]);
        } while (next(iterator.get()) != 0);
    }
    if (PyErr_Occurred() != nullptr) throw nb::python_error(); // a cast failed
}

} // namespace

nb::object run(const request& of, nb::handle out) {
    nb::object dst = nb::borrow<nb::object>(out);
    if (out.is_none())
        dst = allocate_output(of);
    else
        check_output(of, out);
    if (of.how == way::plan) {
        run_plan(of, dst);
    } else {
        if (!out.is_none()) require_apart(out, of.type);
        run_casting(of, dst);
    }
    return dst;
}

plan plan_of(const request& of) {
    return find_plan(of, allocate_output(of));
}

} // namespace maskwise::python
