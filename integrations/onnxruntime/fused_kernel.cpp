#include "fused_kernel.hpp"

#include "kernel_context.hpp"

#include "base/verbose.hpp"

#include <algorithm>
#include <utility>

namespace maskwise::ort {
namespace {

class fused_kernel : public OrtNodeComputeInfo {
public:
    fused_kernel(const runtime& api, const std::vector<std::string_view>& inputs, fused_block fused,
                 std::shared_ptr<session_facts> session)
        : OrtNodeComputeInfo{api_version, create_state, compute, release_state}, api_(api),
          fused_(std::move(fused)), session_(std::move(session)) {
        for (const std::string& name : fused_.inputs) {
            const auto position = std::ranges::find(inputs, name);
            if (position == inputs.end())
                throw error("the node fused around " + fused_.name + " has no input " + name);
            input_indexes_.push_back(static_cast<std::size_t>(position - inputs.begin()));
        }
    }

private:
    static OrtStatus* create_state(OrtNodeComputeInfo*, OrtNodeComputeContext*,
                                   void** state) noexcept {
        *state = nullptr;
        return nullptr;
    }
    static void release_state(OrtNodeComputeInfo*, void*) noexcept {}
    static OrtStatus* compute(OrtNodeComputeInfo* info, void*, OrtKernelContext* context) noexcept {
        auto& self = *static_cast<fused_kernel*>(info);
        return guarded(self.api_, [&] { self.run({self.api_, context}); });
    }

    void run(const kernel_context& context) {
        std::vector<const void*> addresses;
        fusion::operand_shapes shapes;
        for (const std::size_t index : input_indexes_) {
            const input_tensor input = context.input(index);
            fusion::append(shapes, input.desc);
            addresses.push_back(input.data);
        }
        const auto compiled = compiled_.find(shapes, [&] { return compile(context); });
        void* const output = context.output_data(compiled->dst());
        const parallel_loop loop = context.loop(session_->threads);
        run_measured(*compiled, [&] {
            compiled->run({addresses, output}, &loop, &session_->scratch);
        });
    }

    std::shared_ptr<const fusion::compiled_block> compile(const kernel_context& context) const {
        std::vector<tensor_desc> inputs;
        for (const std::size_t index : input_indexes_) inputs.push_back(context.input(index).desc);
        try {
            return fusion::compile(fused_.block, inputs, {{fused_.type, {}}});
        } catch (const shape_error& refused) {
            throw shape_error("Maskwise, around " +
                              (fused_.name.empty() ? fused_.output : fused_.name) + ": " +
                              refused.what());
        }
    }

    const runtime& api_;
    const fused_block fused_;
    const std::shared_ptr<session_facts> session_;
    // For each input of `fused_`: its index among the node's inputs.
    std::vector<std::size_t> input_indexes_;
    fusion::recent_blocks compiled_;
};

} // namespace

OrtNodeComputeInfo* make_fused_kernel(const runtime& api,
                                      const std::vector<std::string_view>& inputs,
                                      fused_block fused, std::shared_ptr<session_facts> session) {
    return new fused_kernel(api, inputs, std::move(fused), std::move(session));
}

void release_fused_kernel(OrtNodeComputeInfo* kernel) noexcept {
    delete static_cast<fused_kernel*>(kernel);
}

} // namespace maskwise::ort
