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
#include <vector>

namespace maskwise::onednn {

// Returns the description of a scratchpad. As in oneDNN, it is 1-D and u8.
logical_tensor scratchpad_of(std::size_t bytes);

// Makes an output with layout `any` dense, with these extents. Returns other outputs unchanged.
logical_tensor completed(logical_tensor output, const dims& extents);

// Builds a region's executable by adding segments in execution order. Segments may read the values
// of earlier segments. Values are in scratch memory, except the partition's inputs and outputs.
class assembly {
public:
    // Adds the client's inputs that the region reads and does not compute. Throws argument_error if
    // an output is missing, or if an output without layout `any` has an unknown shape or unknown
    // strides. Also throws if a tensor's type differs from its type at add_op. Without a block,
    // only cond may differ.
    assembly(partition_kind kind, const row_region& region, const compile_request& request);

    const logical_tensor* find(std::size_t id) const; // null if not known
    // These three functions throw argument_error if the value is not known.
    const logical_tensor& known(std::size_t id) const;
    place place_of(std::size_t id) const;
    source source_of(std::size_t id) const;
    // Returns the description of a value that a segment will compute. An output has the client's
    // description at compile. An inner value has the recorded description with layout `any`. Throws
    // argument_error if no operator computes the value.
    logical_tensor wanted(std::size_t id) const;

    // Adds a value that the next segment computes, with the compiled layout. Throws argument_error
    // if an inner value is too large.
    place add(const logical_tensor& value);
    // Does the same for an inner value that later segments do not read by id.
    place add_inner(const logical_tensor& tensor);
    // Returns scratch of at least this size. Segments run in sequence and share this scratch.
    place scratchpad(std::size_t bytes);
    void add(std::unique_ptr<segment> next) { parts_.segments.push_back(std::move(next)); }

    // Adds the block's segment and results. Throws what fusion::compile throws, and argument_error
    // for an unknown value.
    std::shared_ptr<const fusion::compiled_block>
    add_block(const fusion::block& block, attention_order order, std::string ending);

    // Does the same for gradients. Throws as the constructor of compiled_gradients does.
    std::shared_ptr<const fusion::compiled_gradients>
    add_gradients(const fusion::gradients_chain& chain);

    // Throws argument_error if no segment computes an output, or if the scratch is too large.
    std::unique_ptr<executable> finish();

private:
    struct known_value {
        logical_tensor tensor;
        place memory;
    };

    // The tensors that a segment reads, in the order of the ids.
    struct segment_inputs {
        std::vector<tensor_desc> descs;
        std::vector<source> sources;
    };

    const known_value& find_value(std::size_t id) const;
    segment_inputs inputs_of(const std::vector<std::size_t>& ids) const;
    place add_result(const fusion::block& block, const logical_tensor& result);
    std::optional<abi::inplace_pair> find_inplace(const fusion::block& block) const;

    const row_region& region_;
    executable_parts parts_;
    std::map<std::size_t, known_value> values_;
    std::optional<std::size_t> scratchpad_; // position among the inner values
    std::size_t scratchpad_bytes_ = 0;
};

} // namespace maskwise::onednn
