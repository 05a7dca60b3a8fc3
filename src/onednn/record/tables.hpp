#pragma once

#include "onednn/record/handle_map.hpp"

namespace maskwise::onednn {

class op_builder;
struct graph_record;
struct partition_claim;
struct tensor_record;
class executable;

// A file that inserts or erases includes the record's own header.
struct side_tables {
    handle_map<op_builder> ops;
    handle_map<graph_record> graphs;
    handle_map<partition_claim> claims; // by partition
    handle_map<tensor_record> tensors;
    handle_map<executable> compiled; // by compiled partition
};

// Never destroyed: exit handlers of the client still destroy handles.
side_tables& tables();

} // namespace maskwise::onednn
