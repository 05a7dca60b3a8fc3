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

// Runs a compiled program any number of times, in its own buffers.
class execution {
public:
    // `inputs` holds dense values for every graph input. Edge `where` of each buffer touches a
    // guard page. `in_place`: an output overwrites the input of its in-place pair if this input is
    // a graph input that only one partition reads. `p` must outlive the execution.
    execution(const program& p, const tensor_map& inputs, edge where, bool in_place);

    void run(); // every partition in order; throws test::failed_call
    void wait();

    tensor value(std::size_t id) const;       // current values of tensor `id`, dense
    std::vector<std::size_t> outputs() const; // ids of the tensors that partitions write

    // Describes an illegal write; empty if there is none. Checks the bytes around each tensor and
    // scratchpad. With edge::back, also checks inputs and the gaps between elements.
    std::string damage() const;

    std::size_t bytes() const; // read and written by all partitions; a tensor counts once per
                               // partition and direction
    void evict() const;        // drops every tensor from the CPU's caches

private:
    struct storage {
        dnnl_graph_logical_tensor_t lt;
        guarded_buffer buffer;
        std::size_t shares = 0; // if is_shared: id of the tensor whose buffer is used
        bool is_shared = false;
        bool written = false;
        std::vector<std::byte> before; // contents before the first run; only with edge::back
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
    std::size_t readers(std::size_t id) const; // number of partitions that read the tensor
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
