#pragma once

#include "client/program.hpp"
#include "data/filler.hpp"
#include "support/guarded_buffer.hpp"

#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace maskwise::bench {

using test::guarded_buffer;
using edge = guarded_buffer::edge;

// Buffers and tensors for a compiled program; may be run any number of times.
class execution {
public:
    // `inputs` holds dense values for every graph input. With `in_place`, an output shares the
    // buffer of the input that the library allows it to overwrite. `p` must outlive this.
    execution(const program& p, const tensor_map& inputs, edge where, bool in_place);

    void run();  // every partition in order; throws test::failed_call
    void wait(); // until the stream has finished

    tensor value(std::size_t id) const;       // dense tensors that a partition writes, by id
    std::vector<std::size_t> outputs() const; // every tensor that a partition writes

    // Describes illegal writes: bytes around or between the elements of an output, or an input.
    // Empty if there are none.
    std::string damage() const;

    std::size_t bytes() const; // distinct bytes read from inputs and written to outputs, summed
                               // over the partitions
    void evict() const;        // drops every buffer from the processor's caches

private:
    struct storage {
        dnnl_graph_logical_tensor_t lt;
        guarded_buffer buffer;
        std::size_t shares = 0; // id whose buffer is used instead, where shared
        bool is_shared = false;
        bool written = false;
        std::vector<std::byte> before; // contents before the first run
        test::owned_tensor handle;
    };
    struct bound_step {
        dnnl_graph_compiled_partition_t compiled;
        std::vector<const_dnnl_graph_tensor_t> inputs;
        std::vector<const_dnnl_graph_tensor_t> outputs;
        const_dnnl_graph_tensor_t scratchpad = nullptr;
    };

    void add_inputs(const program_step& step, const tensor_map& values, edge where);
    void add_outputs(const program_step& step, edge where, bool in_place);
    std::optional<std::size_t> in_place_input(const program_step& step, std::size_t output) const;
    std::size_t readers(std::size_t id) const; // partitions that take the tensor as input
    void add_scratchpad(bound_step& step);
    void make_handle(storage& s);
    std::span<std::byte> bytes_of(const storage& s) const;
    std::string damage_of(std::size_t id, const storage& s) const;

    const program& program_;
    std::map<std::size_t, storage> tensors_;
    std::list<storage> scratchpads_;
    std::vector<bound_step> steps_;
};

} // namespace maskwise::bench
