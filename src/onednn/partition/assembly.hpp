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

// Memory for one execution of a partition, described as oneDNN describes its scratchpads: 1-D, u8.
// With 0 bytes a client skips the allocation.
logical_tensor scratchpad_of(std::size_t bytes);

// Completes an output that the client may have left open: it becomes dense, with these extents.
logical_tensor completed(logical_tensor output, const dims& extents);

// Builds a region's executable by adding segments in the order in which they run. Later segments
// may read the values that earlier ones make. Values that the client requests are in the client's
// memory, all others in scratch memory.
class assembly {
public:
    // Knows the client's inputs that the region reads and does not make itself. Throws
    // argument_error if a client's tensor has another type than at add_op, or if an output is
    // missing or open, even where oneDNN would accept it.
    assembly(partition_kind kind, const row_region& region, const compile_request& request);

    const logical_tensor* find(std::size_t id) const; // null if not known
    // Throws argument_error if the value is not known.
    const logical_tensor& known(std::size_t id) const;
    place place_of(std::size_t id) const;
    source source_of(std::size_t id) const;
    // A value that a segment is to make: as the client describes it, if the client requests it,
    // else as recorded, in any layout.
    logical_tensor wanted(std::size_t id) const;

    // Adds a value that the next segment makes, as compiled.
    place add(const logical_tensor& value);
    // The same for a value without a name.
    place add_inner(const logical_tensor& tensor);
    // All segments share this memory, because they never run at the same time.
    place scratchpad(std::size_t bytes);
    void add(std::unique_ptr<segment> next) { parts_.segments.push_back(std::move(next)); }

    // Adds the block's segment and its results. Throws as fusion::compile does.
    std::shared_ptr<const fusion::compiled_block>
    add_block(const fusion::block& block, attention_order order, std::string ending);

    // The same for gradients.
    std::shared_ptr<const fusion::compiled_gradients>
    add_gradients(const fusion::gradients_chain& chain);

    // Throws argument_error if no segment makes an output.
    std::unique_ptr<executable> finish();

private:
    struct known_value {
        logical_tensor tensor;
        place memory;
    };

    // What a segment reads, in the order of the ids.
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
