#pragma once

#include "chain.hpp"

#include <vector>

namespace maskwise::fuzz {

// Dimensions, by number. An extent may differ between add_op and compile. Dimension 0 has extent 1.
using dimensions = std::vector<std::size_t>;

// A tensor of a graph under construction. `largest` bounds a correct result's absolute values.
// `error` bounds the error of a result.
struct chain_value {
    std::size_t id = 0;
    dnnl_data_type_t type{};
    dimensions shape;
    double largest = 0, error = 0;
};

// Writes a graph operator by operator.
class chain_writer {
public:
    // `later`: a second stream for draws that were added later, so that older inputs still draw the
    // same graphs.
    chain_writer(generator& random, generator& later);

    std::size_t add_dimension();
    // Adds a dimension that has this extent at add_op.
    std::size_t add_dimension(std::int64_t extent);
    // Tensors of this rank may have one more dimension at compile, and shapes may be known only at
    // compile.
    void may_reshape(std::size_t rank);
    chain_value input(dnnl_data_type_t type, const dimensions& shape, double largest = 2);
    // Whether an input of this type may be a host scalar.
    bool allows_host_scalar(dnnl_data_type_t type) const;
    chain_value host_scalar_input();
    // An input whose elements all have this value, which may be infinite.
    chain_value fill(dnnl_data_type_t type, const dimensions& shape, float value);
    // `error` bounds the error before the result is rounded to its type.
    chain_value op(dnnl_graph_op_kind_t kind, const std::vector<chain_value>& inputs,
                   dnnl_data_type_t type, const dimensions& shape, double largest, double error,
                   test::attribute_list attributes = {});
    // Adds an output to the last operator.
    void add_output(dnnl_data_type_t type, const dimensions& shape, double error);
    chain_description finish();

    // Whether later tensors may have layouts other than row-major.
    bool may_lay_out_anew = true;

private:
    chain_value tensor(dnnl_data_type_t type, const dimensions& shape);
    logical_tensor recorded(const chain_value& value);
    void lay_out_anew(logical_tensor& tensor);

    generator& random_;
    generator& later_;
    chain_description chain_;
    std::vector<std::int64_t> then_{1}, now_{1}; // extents of dimensions at add_op, and at compile
    bool changes_extents_, changes_layouts_, forgets_shapes_ = false;
    std::size_t deepened_ = 0; // tensors of this rank have one more dimension at compile
    std::int64_t leading_ = 1; // the extent of that leading dimension
};

} // namespace maskwise::fuzz
