#pragma once

#include "attention/attention_plan.hpp"

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace maskwise::ort {

// What the fused nodes of a session share. They mostly run one after another, so scratch memory is
// theirs together: as many pieces are kept as were in use at once. Any thread.
class session_facts {
public:
    explicit session_facts(int threads) : threads_(threads) {}

    int threads() const { return threads_; }

    // Calls run(std::unique_ptr<attention_scratch>&), which may replace it.
    template <class Run>
    void lend_scratch(const Run& run) {
        std::unique_ptr<attention_scratch> piece = take();
        run(piece);
        const std::lock_guard lock(mutex_);
        kept_.push_back(std::move(piece));
    }

private:
    std::unique_ptr<attention_scratch> take() {
        const std::lock_guard lock(mutex_);
        if (kept_.empty()) return nullptr;
        auto last = std::move(kept_.back());
        kept_.pop_back();
        return last;
    }

    const int threads_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<attention_scratch>> kept_;
};

} // namespace maskwise::ort
