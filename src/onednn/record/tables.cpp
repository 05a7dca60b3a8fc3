#include "onednn/record/tables.hpp"

#include <pthread.h>

namespace maskwise::onednn {
namespace {

constinit side_tables all;

// A lock held by a thread that the child does not have would never be released there.
[[maybe_unused]] const int watching_forks = pthread_atfork(
    [] { table_writes.lock(); }, [] { table_writes.unlock(); }, [] { table_writes.unlock(); });

} // namespace

std::mutex table_writes;

side_tables& tables() {
    return all;
}

} // namespace maskwise::onednn
