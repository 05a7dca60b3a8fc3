#include "onednn/record/tables.hpp"

#include "base/first_use.hpp"

#include <pthread.h>

namespace maskwise::onednn {

// A fork may be the first to ask, and cannot report that there is no memory: none is needed.
side_tables& tables() {
    return at_first_use<[] { return side_tables(); }>();
}

namespace {

template <typename Act>
void for_each_table(Act&& act) {
    side_tables& all = tables();
    act(all.ops);
    act(all.graphs);
    act(all.claims);
    act(all.tensors);
    act(all.compiled);
}

void lock_all() {
    for_each_table([](auto& table) { table.lock(); });
}
void unlock_all() {
    for_each_table([](auto& table) { table.unlock(); });
}

// Held by a thread that the child does not have, a table would stay locked there.
[[maybe_unused]] const int watching_forks = pthread_atfork(lock_all, unlock_all, unlock_all);

} // namespace

} // namespace maskwise::onednn
