#include "process/modes.hpp"

#include "model/graph.hpp"
#include "process/own_command.hpp"

#include <fmt/format.h>

#include <sched.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace maskwise::bench {

void limit_threads(int threads, const std::vector<std::string>& arguments) {
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        throw std::system_error(errno, std::generic_category(), "sched_getaffinity");
    const int available = CPU_COUNT(&allowed);
    if (threads > available)
        throw input_error(
            fmt::format("--threads={}: the process has {} processors", threads, available));
    const std::string wanted = std::to_string(threads);
    const char* current = std::getenv("OMP_NUM_THREADS");
    if (available == threads && current && wanted == current) return;
    int remaining = available;
    for (std::size_t cpu = CPU_SETSIZE; cpu-- > 0 && remaining > threads;) {
        if (!CPU_ISSET(cpu, &allowed)) continue;
        CPU_CLR(cpu, &allowed);
        --remaining;
    }
    if (sched_setaffinity(0, sizeof allowed, &allowed) != 0)
        throw std::system_error(errno, std::generic_category(), "sched_setaffinity");
    setenv("OMP_NUM_THREADS", wanted.c_str(), 1);
    setenv("DPCPP_CPU_NUM_CUS", wanted.c_str(), 1);
    execute_self(arguments);
    throw std::system_error(errno, std::generic_category(), "execv");
}

} // namespace maskwise::bench
