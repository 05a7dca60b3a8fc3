#pragma once

#include "input/case_config.hpp"
#include "report/result.hpp"

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

namespace maskwise::bench {

// This program again, as a child that runs tests on request (--serve): a crash costs the child
// only.
class worker {
public:
    explicit worker(int verbose) : verbose_(verbose) {}
    ~worker();
    worker(const worker&) = delete;
    worker& operator=(const worker&) = delete;

    // A child that dies gives ABORTED; the next call starts a new one.
    case_result run(const case_config& config);

    // the child's description of its library and CPU
    const std::string& library() const { return library_; }

private:
    void start();
    std::string stop(); // how the child ended
    bool send(const std::string& line);
    bool receive(std::string& line); // the next line of protocol; others are passed through

    int verbose_;
    pid_t pid_ = -1;
    std::FILE* requests_ = nullptr;
    std::FILE* answers_ = nullptr;
    std::string library_;
};

// Begins each line of the protocol, because libraries print on standard output, too.
constexpr const char* answer_prefix = "maskwise-bench-answer ";

} // namespace maskwise::bench
