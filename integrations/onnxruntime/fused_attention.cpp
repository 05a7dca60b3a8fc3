#include "fused_plan.hpp"

#include "api/run_measured.hpp"
#include "graph/fused_attention.hpp"
#include "tensor/tensor_desc.hpp"

namespace maskwise::ort {
namespace {

class fused_attention_plan : public fused_plan {
public:
    fused_attention_plan(const fusion& of, std::span<const tensor_desc> inputs)
        : attention_(of.chain, *of.attention, inputs) {
        attention_.plan(attention_order::tiles, dense_desc(of.type, shape()));
    }

    const dims& shape() const override { return attention_.dst(); }

    void run(std::span<const void* const> inputs, void* output, const parallel_loop& loop,
             session_facts& session) const override {
        const attention_data& plan = attention_.planned();
        const auto call = attention_.bind(inputs, output);
        const parallel_loop* const threads = pays_threads(plan) ? &loop : nullptr;
        session.lend_scratch([&](std::unique_ptr<attention_scratch>& memory) {
            run_measured(plan,
                         [&] { run_attention(plan, call.at, call.numbers, threads, memory); });
        });
    }

private:
    // A session's threads wait awake unless it says otherwise, so one more pays sooner than one of
    // oneTBB's.
    static bool pays_threads(const attention_data& plan) {
        constexpr double from_products = 1 << 16;
        return products_of(plan) >= from_products;
    }

    graph::fused_attention attention_;
};

} // namespace

std::shared_ptr<const fused_plan> make_fused_attention(const fusion& of,
                                                       std::span<const tensor_desc> inputs) {
    return std::make_shared<fused_attention_plan>(of, inputs);
}

} // namespace maskwise::ort
