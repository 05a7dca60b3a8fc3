#include "graph/match.hpp"

#include "base/error.hpp"
#include "schema/select_schema.hpp"

namespace maskwise::graph {

bool can_claim(const op& candidate, std::string& reason) {
    if (candidate.kind != op_kind::select || candidate.inputs.size() != 3 ||
        candidate.outputs.size() != 1) {
        reason = "not a Select of three inputs and one output";
        return false;
    }
    try {
        check_types(onednn_select(), candidate.inputs[0].type, candidate.inputs[1].type,
                    candidate.inputs[2].type, candidate.outputs[0].type);
    } catch (const invalid_argument& failure) {
        reason = failure.what();
        return false;
    }
    return true;
}

} // namespace maskwise::graph
