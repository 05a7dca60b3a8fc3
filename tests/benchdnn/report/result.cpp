#include "report/result.hpp"

namespace maskwise::bench {

const char* verdict_word(verdict v) {
    switch (v) {
    case verdict::passed:
        return "PASSED";
    case verdict::failed:
        return "FAILED";
    case verdict::skipped:
        return "SKIPPED";
    case verdict::mistrusted:
        return "MISTRUSTED";
    case verdict::unimplemented:
        return "UNIMPLEMENTED";
    case verdict::invalid_arguments:
        return "INVALID_ARGUMENTS";
    case verdict::listed:
        return "LISTED";
    case verdict::aborted:
        return "ABORTED";
    }
    return "?";
}

bool counts_as_failure(verdict v) {
    return v == verdict::failed || v == verdict::unimplemented || v == verdict::invalid_arguments ||
           v == verdict::aborted;
}

} // namespace maskwise::bench
