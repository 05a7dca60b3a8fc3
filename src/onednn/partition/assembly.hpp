#pragma once

#include "fusion/block.hpp"
#include "onednn/partition/claim.hpp"
#include "onednn/partition/executable.hpp"
#include "onednn/partition/segments.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace maskwise::onednn {

// Memory of oneDNN's own for one execution, as it describes it: 1-D, u8. Without bytes a client
// skips the allocation.
abi::logical_tensor scratchpad_of(std::size_t bytes);

// An output that may be open: then it gets these extents, dense.
abi::logical_tensor completed(abi::logical_tensor output, const dims& extents);

// A region's executable while segments are added to it, in the order in which they run. Each makes
// values that later ones may read: at the client's, where it asks for them, else in scratch memory.
class assembly {
public:
    // Knows the client's inputs, but for those that the region makes: the client has no say in
    // them. Throws argument_error where a tensor of the client's has another type than at add_op,
    // or an output is left out or open, which oneDNN might survive.
    assembly(partition_kind kind, const row_region& region, const compile_call& call);

    const abi::logical_tensor* find(std::size_t id) const; // null where not known
    // Throws argument_error where the value is not known.
    const abi::logical_tensor& known(std::size_t id) const;
    place place_of(std::size_t id) const;
    source source_of(std::size_t id) const;
    // A value that is to be made: as the client describes it, where it asks for it, else as
    // recorded, in any layout.
    abi::logical_tensor wanted(std::size_t id) const;

    // A value that the next segment makes, as compiled.
    place add(const abi::logical_tensor& made);
    // An unnamed one.
    place add_inner(const abi::logical_tensor& tensor);
    // One memory for all segments, which never run at the same time.
    place scratchpad(std::size_t bytes);
    void add(std::unique_ptr<segment> next) { parts_.segments.push_back(std::move(next)); }

    // Adds the block's segment and its results. Throws what fusion::compile throws.
    std::shared_ptr<const fusion::compiled_block>
    add_block(const fusion::block& block, attention_order order, std::string ending);

    // Throws argument_error where an output was not made.
    std::unique_ptr<executable> finish();

private:
    struct value {
        abi::logical_tensor tensor;
        place at;
    };

    const value& find_value(std::size_t id) const;
    place add_result(const fusion::block& block, const abi::logical_tensor& result);
    std::optional<abi::inplace_pair> find_inplace(const fusion::block& block) const;

    const row_region& region_;
    executable_parts parts_;
    std::map<std::size_t, value> values_;
    std::optional<std::size_t> scratchpad_; // among the inner values
    std::size_t scratchpad_bytes_ = 0;
};

} // namespace maskwise::onednn
