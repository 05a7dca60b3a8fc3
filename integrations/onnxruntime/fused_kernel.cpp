#include "fused_kernel.hpp"

#include "fused_plan.hpp"
#include "graph_facts.hpp"
#include "loop.hpp"
#include "tensors.hpp"

#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>

namespace maskwise::ort {
namespace {

// The plans of the last shapes: generated text, for one, has another length each time.
class recent_plans {
public:
    using plan_pointer = std::shared_ptr<const fused_plan>;
    using shapes = std::vector<std::int64_t>; // ranks and extents

    template <class Make>
    plan_pointer find(const shapes& of, const Make& make) {
        {
            const std::lock_guard lock(mutex_);
            const auto known = std::ranges::find(plans_, of, &entry::first);
            if (known != plans_.end()) return known->second;
        }
        plan_pointer plan = make();
        const std::lock_guard lock(mutex_);
        if (plans_.size() == most_plans) plans_.pop_back();
        plans_.emplace_front(of, plan);
        return plan;
    }

private:
    using entry = std::pair<shapes, plan_pointer>;
    static constexpr std::size_t most_plans = 4;

    std::mutex mutex_;
    std::deque<entry> plans_;
};

class fused_kernel : public abi::layout::compute_info {
public:
    fused_kernel(const runtime& with, const abi::node* node, fusion form,
                 std::shared_ptr<session_facts> session)
        : abi::layout::compute_info{abi::api_version, create_state, compute, release_state},
          with_(with), form_(std::move(form)), session_(std::move(session)) {
        const auto inputs = inputs_of(with, node);
        for (const std::string& name : form_.inputs) {
            const auto found = std::ranges::find_if(
                inputs, [&](const auto* input) { return name_of(with, input) == name; });
            if (found == inputs.end())
                throw error("the node fused around " + form_.name + " has no input " + name);
            places_.push_back(static_cast<std::size_t>(found - inputs.begin()));
        }
    }

private:
    static abi::status* create_state(abi::compute_info*, abi::compute_context*,
                                     void** state) noexcept {
        *state = nullptr;
        return nullptr;
    }
    static void release_state(abi::compute_info*, void*) noexcept {}
    static abi::status* compute(abi::compute_info* own, void*,
                                abi::kernel_context* context) noexcept {
        auto& self = *static_cast<fused_kernel*>(own);
        return guarded(self.with_, [&] { self.run(context); });
    }

    void run(abi::kernel_context* context) {
        std::vector<const void*> addresses;
        recent_plans::shapes shapes;
        for (const std::size_t place : places_) {
            const input_tensor input = read_input(with_, context, place);
            shapes.push_back(input.desc.extents.rank());
            shapes.insert(shapes.end(), input.desc.extents.begin(), input.desc.extents.end());
            addresses.push_back(input.data);
        }
        const auto plan = plans_.find(shapes, [&] { return make_plan(context); });
        void* output = nullptr;
        check(with_.GetTensorMutableData(make_output(with_, context, plan->shape()), &output));
        plan->run(addresses, output, loop_of(with_, context, session_->threads()), *session_);
    }

    recent_plans::plan_pointer make_plan(abi::kernel_context* context) const {
        std::vector<tensor_desc> inputs;
        for (const std::size_t place : places_)
            inputs.push_back(read_input(with_, context, place).desc);
        try {
            return form_.attention ? make_fused_attention(form_, inputs)
                                   : make_fused_rows(form_, inputs);
        } catch (const invalid_shape& refused) {
            throw invalid_shape("Maskwise, around " +
                                (form_.name.empty() ? form_.output : form_.name) + ": " +
                                refused.what());
        }
    }

    const runtime& with_;
    const fusion form_;
    const std::shared_ptr<session_facts> session_;
    std::vector<std::size_t> places_; // of the fusion's inputs among the node's
    recent_plans plans_;
};

} // namespace

abi::compute_info* make_fused_kernel(const runtime& with, const abi::node* node, fusion form,
                                     std::shared_ptr<session_facts> session) {
    return new fused_kernel(with, node, std::move(form), std::move(session));
}

void release_fused_kernel(abi::compute_info* kernel) noexcept {
    delete static_cast<fused_kernel*>(kernel);
}

} // namespace maskwise::ort
