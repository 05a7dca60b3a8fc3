#pragma once

#include "fusion/compiled_block.hpp"

namespace maskwise::ort {

// What the fused nodes of a session share. Any thread.
class session_facts {
public:
    explicit session_facts(int threads) : threads_(threads) {}

    int threads() const { return threads_; }
    fusion::scratch_pool& scratch() { return scratch_; }

private:
    const int threads_;
    fusion::scratch_pool scratch_;
};

} // namespace maskwise::ort
