#pragma once

#include "graph/row_chain.hpp"
#include "onednn/abi.hpp"
#include "onednn/compile.hpp"
#include "onednn/real_part.hpp"
#include "onednn/records.hpp"

#include <cstddef>
#include <memory>
#include <vector>

namespace maskwise::onednn {

// A larger partition of oneDNN's with a chain of rows around a Select in it. The client does not
// see the claim: it is made when the partition is compiled, or not at all.
struct region_record {
    std::size_t id = 0; // of the partition
    graph_settings settings;
    std::vector<std::shared_ptr<const op_record>> ops; // in topological order
    std::vector<std::size_t> output_ids;
    graph::row_chain chain;
};

// Looks at a partition of several operators and remembers it where it holds such a chain. One
// verbose line says why not, where there is a Select. Throws std::bad_alloc.
void note_region(const graph_record& graph, abi::partition partition);

// Compiles a remembered partition as a composite; the real library compiles the same handle where
// that cannot be done. Any thread.
abi::status compile_region(const std::shared_ptr<const region_record>& region,
                           const compile_call& call);

// Compiles a partition that was merged as a chain of rows. Throws where oneDNN cannot compile it
// either.
std::unique_ptr<compiled_record>
build_merged_rows(const std::shared_ptr<const partition_record>& partition,
                  const compile_call& call);

} // namespace maskwise::onednn
