#include "fused_kernel.hpp"

#include "calls.hpp"

#include "base/verbose.hpp"

#include <algorithm>
#include <utility>

namespace maskwise::ort {
namespace {

class fused_kernel : public OrtNodeComputeInfo {
public:
    fused_kernel(const runtime& with, const std::vector<std::string_view>& inputs, fused_node form,
                 std::shared_ptr<session_facts> session)
        : OrtNodeComputeInfo{api_version, create_state, compute, release_state}, with_(with),
          form_(std::move(form)), session_(std::move(session)) {
        for (const std::string& name : form_.inputs) {
            const auto found = std::ranges::find(inputs, name);
            if (found == inputs.end())
                throw error("the node fused around " + form_.name + " has no input " + name);
            places_.push_back(static_cast<std::size_t>(found - inputs.begin()));
        }
    }

private:
    static OrtStatus* create_state(OrtNodeComputeInfo*, OrtNodeComputeContext*,
                                   void** state) noexcept {
        *state = nullptr;
        return nullptr;
    }
    static void release_state(OrtNodeComputeInfo*, void*) noexcept {}
    static OrtStatus* compute(OrtNodeComputeInfo* own, void*, OrtKernelContext* context) noexcept {
        auto& self = *static_cast<fused_kernel*>(own);
        return guarded(self.with_, [&] { self.run({self.with_, context}); });
    }

    void run(const call& at) {
        std::vector<const void*> addresses;
        fusion::operand_shapes shapes;
        for (const std::size_t place : places_) {
            const input_tensor input = at.input(place);
            fusion::append(shapes, input.desc);
            addresses.push_back(input.data);
        }
        const auto compiled = compiled_.find(shapes, [&] { return compile(at); });
        void* const output = at.output_data(compiled->dst());
        const parallel_loop loop = at.loop(session_->threads);
        run_measured(*compiled, [&] {
            compiled->run({addresses, output}, &loop, &session_->scratch);
        });
    }

    std::shared_ptr<const fusion::compiled_block> compile(const call& at) const {
        std::vector<tensor_desc> inputs;
        for (const std::size_t place : places_) inputs.push_back(at.input(place).desc);
        try {
            return fusion::compile(form_.block, inputs, {{form_.type, {}}});
        } catch (const shape_error& refused) {
            throw shape_error("Maskwise, around " +
                              (form_.name.empty() ? form_.output : form_.name) + ": " +
                              refused.what());
        }
    }

    const runtime& with_;
    const fused_node form_;
    const std::shared_ptr<session_facts> session_;
    std::vector<std::size_t> places_; // of the form's inputs among the node's
    fusion::recent_blocks compiled_;
};

} // namespace

OrtNodeComputeInfo* make_fused_kernel(const runtime& with,
                                      const std::vector<std::string_view>& inputs, fused_node form,
                                      std::shared_ptr<session_facts> session) {
    return new fused_kernel(with, inputs, std::move(form), std::move(session));
}

void release_fused_kernel(OrtNodeComputeInfo* kernel) noexcept {
    delete static_cast<fused_kernel*>(kernel);
}

} // namespace maskwise::ort
