#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace maskwise {

// The plans of an operator's last calls, for callers whose shapes vary, for example while text is
// generated. Thread-safe.
template <class Key, class Plan>
class recent_plans {
public:
    // The cached plan, or what make() returns or throws.
    template <class Make>
    Plan find(const Key& key, const Make& make) {
        if (auto cached = find_cached(key)) return *std::move(cached);
        Plan plan = make();
        const std::lock_guard lock(mutex_);
        if (plans_.size() == most_plans) plans_.pop_back();
        plans_.emplace_front(key, plan);
        return plan;
    }

private:
    static constexpr std::size_t most_plans = 4;

    std::optional<Plan> find_cached(const Key& key) {
        const std::lock_guard lock(mutex_);
        const auto cached = std::ranges::find(plans_, key, &std::pair<Key, Plan>::first);
        if (cached == plans_.end()) return std::nullopt;
        std::rotate(plans_.begin(), cached, cached + 1);
        return plans_.front().second;
    }

    std::mutex mutex_;
    std::deque<std::pair<Key, Plan>> plans_; // the last used first
};

} // namespace maskwise
