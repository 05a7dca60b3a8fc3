#pragma once

#include "api.hpp"
#include "description.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace maskwise::fuzz {

struct partition_note {
    std::vector<std::size_t> ops;
    std::vector<int> answers; // the status of each query, and the numbers of ports

    bool operator==(const partition_note&) const = default;
};

// One library's objects, and the status of each call.
struct session {
    const api& calls;
    std::vector<int> answers;
    std::vector<dnnl_graph_op_t> ops;
    dnnl_graph_graph_t graph = nullptr;
    std::vector<dnnl_graph_partition_t> partitions;
    std::vector<partition_note> notes; // for each partition

    explicit session(const api& library) : calls(library) {}

    // Builds the graph and gets its partitions.
    void build(const graph_description& described);
    void destroy();

private:
    void note(int answer) { answers.push_back(answer); }
    void build_op(const op_description& described);
    void build_graph(const graph_description& described);
    void build_single(const graph_description& described);
    void note_partition(dnnl_graph_partition_t partition);
};

// Returns how `plugin` illegally differs from oneDNN alone, or "". Under policy fusion, several
// single-operator partitions may become one.
std::string complain(const session& plugin, const session& other, const graph_description& graph);

} // namespace maskwise::fuzz
