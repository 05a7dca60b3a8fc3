#include "data/walk.hpp"
#include "oracle/ops.hpp"

namespace maskwise::bench {
namespace {

// An operand as batches of row-major rows x columns, its transpose already done.
struct matrices {
    dims batch;
    std::size_t rows;
    std::size_t columns;
    std::vector<double> values;
};

matrices as_matrices(const tensor& t, bool transposed) {
    if (t.shape.size() < 2) throw input_error("MatMul of rank " + std::to_string(t.shape.size()));
    matrices m{dims(t.shape.begin(), t.shape.end() - 2),
               static_cast<std::size_t>(t.shape[t.shape.size() - 2]),
               static_cast<std::size_t>(t.shape.back()), to_doubles(t)};
    if (!transposed) return m;
    std::vector<double> turned(m.values.size());
    const std::size_t size = m.rows * m.columns;
    for (std::size_t first = 0; size != 0 && first < turned.size(); first += size)
        for (std::size_t r = 0; r < m.rows; ++r)
            for (std::size_t c = 0; c < m.columns; ++c)
                turned[first + c * m.rows + r] = m.values[first + r * m.columns + c];
    m.values = std::move(turned);
    std::swap(m.rows, m.columns);
    return m;
}

void multiply(const double* a, const double* b, double* c, std::size_t m, std::size_t k,
              std::size_t n) {
    for (std::size_t i = 0; i < m; ++i)
        for (std::size_t l = 0; l < k; ++l) {
            const double factor = a[i * k + l];
            const double* row = b + l * n;
            double* out = c + i * n;
            for (std::size_t j = 0; j < n; ++j) out[j] += factor * row[j];
        }
}

void add_bias(std::vector<double>& values, const tensor& bias) {
    const std::vector<double> row = to_doubles(bias);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += row[i % row.size()];
}

} // namespace

std::vector<tensor> oracle_matmul(const op& o, const operands& in) {
    const matrices a = as_matrices(*in.at(0), o.attr<bool>("transpose_a", false));
    const matrices b = as_matrices(*in.at(1), o.attr<bool>("transpose_b", false));
    if (a.columns != b.rows)
        throw input_error("MatMul of " + to_text(in[0]->shape) + " and " + to_text(in[1]->shape));
    const dims batch = broadcast(a.batch, b.batch);
    const auto steps = [&](const dims& own) {
        return broadcast_strides(own, dense_strides(own), batch);
    };
    const std::array<dims, 2> strides{steps(a.batch), steps(b.batch)};
    const std::size_t size = a.rows * b.columns;
    std::vector<double> values(static_cast<std::size_t>(element_count(batch)) * size, 0.0);
    double* out = values.data();
    walk_rows<2>(batch, strides, [&](const auto& at, std::int64_t extent) {
        for (std::int64_t i = 0; i < extent; ++i, out += size) {
            const auto matrix = [&](std::size_t k) {
                return static_cast<std::size_t>(at[k] + i * inner_stride(strides[k]));
            };
            multiply(a.values.data() + matrix(0) * a.rows * a.columns,
                     b.values.data() + matrix(1) * b.rows * b.columns, out, a.rows, a.columns,
                     b.columns);
        }
    });
    if (in.size() > 2) add_bias(values, *in[2]);
    dims shape = batch;
    shape.push_back(static_cast<std::int64_t>(a.rows));
    shape.push_back(static_cast<std::int64_t>(b.columns));
    return {arithmetic_result(o, 0, shape, values)};
}

} // namespace maskwise::bench
