#pragma once

// A case of --dialect=attention, by the options of graphs: tensors by id (0 query, 1 key, 2 value,
// 3 cond, 4 bias, 5 dst), the attributes of op 0, and what cond holds.

#include "input/case_config.hpp"
#include "support/attention_case.hpp"

namespace maskwise::bench {

// Key has query's shape where none is said, value key's. dst is row-major and of query's type; it
// and statistics are left out where the shapes do not fit, which the library refuses. Throws
// input_error for what cannot be read.
attention_desc describe_attention(const case_config& config);

// In memory against that edge of their pages, inputs filled.
test::attention_case make_attention(const case_config& config, const attention_desc& desc,
                                    test::guarded_buffer::edge where);

} // namespace maskwise::bench
