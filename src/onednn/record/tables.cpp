#include "onednn/record/tables.hpp"

#include <pthread.h>

namespace maskwise::onednn {
namespace {

constinit side_tables the_tables;

// A fork waits for the lock. Else another thread could hold the lock during the fork. The child
// does not have that thread, so nothing would release the child's copy of the lock.
[[maybe_unused]] const int watching_forks = pthread_atfork(
    [] { table_writes.lock(); }, [] { table_writes.unlock(); }, [] { table_writes.unlock(); });

} // namespace

std::mutex table_writes;

side_tables& tables() {
    return the_tables;
}

} // namespace maskwise::onednn
