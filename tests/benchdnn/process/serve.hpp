#pragma once

namespace maskwise::bench {

// Answers requests from standard input until it ends; each answer is one line of JSON behind
// answer_prefix. Requests:
//   run ["--flag=value", ...]   one test: {"result": {...}, "library": "..."}
//   time SAMPLES MAX_MS         more samples of that test: {"samples": [ms, ...]}
// A fault of the input: {"input_error": "..."}.
int serve(int verbose);

} // namespace maskwise::bench
