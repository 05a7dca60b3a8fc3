#pragma once

#include "input/case_config.hpp"
#include "report/result.hpp"

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

namespace maskwise::bench {

// Runs tests in a child process: this program with --serve. A crash ends only the child.
class worker {
public:
    explicit worker(int verbose) : verbose_(verbose) {}
    ~worker();
    worker(const worker&) = delete;
    worker& operator=(const worker&) = delete;

    // If the child dies, the verdict is ABORTED, and the next call starts another child.
    case_result run(const case_config& config);

    // The child's description of its library and CPU.
    const std::string& library() const { return library_; }

private:
    void start();
    std::string stop(); // how the child ended
    bool send(const std::string& line);
    bool receive(std::string& line); // reads the next answer; prints other lines

    int verbose_;
    pid_t pid_ = -1;
    std::FILE* requests_ = nullptr;
    std::FILE* answers_ = nullptr;
    std::string library_;
};

// Begins each answer, because libraries print on standard output, too.
constexpr const char* answer_prefix = "maskwise-bench-answer ";

} // namespace maskwise::bench
