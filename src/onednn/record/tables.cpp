#include "onednn/record/tables.hpp"

#include <pthread.h>

namespace maskwise::onednn {
namespace {

constinit side_tables all;

// The child would inherit a lock that no thread of it could release.
[[maybe_unused]] const int watching_forks = pthread_atfork(
    [] { table_writes.lock(); }, [] { table_writes.unlock(); }, [] { table_writes.unlock(); });

} // namespace

std::mutex table_writes;

side_tables& tables() {
    return all;
}

} // namespace maskwise::onednn
