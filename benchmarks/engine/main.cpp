// bench_client-engine: runs Select with Maskwise's C++ engine, without oneDNN. Answers the requests
// of bench_client except "compile". The answer to "load" includes a line that describes the plan.

#include "common/measured_call.hpp"
#include "common/serve.hpp"

#include "exec/run_select.hpp"
#include "plan/select_plan.hpp"

namespace maskwise::bench {
namespace {

tensor_desc describe(data_type type, const operand& o) {
    tensor_desc desc{type, {}, {}};
    for (const std::int64_t extent : o.extents) desc.extents.push_back(extent);
    for (const std::int64_t stride : o.strides_elems)
        desc.strides_bytes.push_back(stride * static_cast<std::int64_t>(width_bytes(type)));
    return desc;
}

data_type type_of(const std::string& dtype) {
    if (dtype == "bool") return data_type::boolean;
    if (dtype == "i64") return data_type::i64;
    if (dtype == "f32") return data_type::f32;
    return dtype == "bf16" ? data_type::bf16 : data_type::f16;
}

select_desc describe(const bench_case& c) {
    const data_type type = type_of(c.dtype);
    return {describe(data_type::boolean, c.cond), describe(type, c.src_0), describe(type, c.src_1),
            describe(type, c.dst)};
}

class engine_call : public timed_call {
public:
    explicit engine_call(const bench_case& c) : plan_(make_select_plan(describe(c))) {}
    const select_plan& plan() const { return *plan_; }

    void bind(const std::array<void*, 4>& buffers) override { buffers_ = buffers; }
    void execute() override {
        run_select(*plan_, buffers_[0], buffers_[1], buffers_[2], buffers_[3]);
    }

private:
    std::shared_ptr<const select_plan> plan_;
    std::array<void*, 4> buffers_{};
};

class client {
public:
    json answer(const json& request) {
        const std::string request_name = request.at("do");
        if (request_name == "hello") return {{"version", "engine"}, {"threads", processor_count()}};
        if (request_name == "time") return measured_.time(request);
        if (request_name == "peak_resident") return {{"bytes", peak_resident_bytes()}};
        if (request_name == "load") return load(parse_case(request.at("case")));
        throw std::invalid_argument("unknown request '" + request_name + "'");
    }

private:
    json load(const bench_case& c) {
        auto call = std::make_unique<engine_call>(c);
        const std::string plan = to_string(call->plan());
        json answer = measured_.load(c, std::move(call));
        answer["maskwise"] = true;
        answer["plan"] = plan;
        return answer;
    }

    measured_call measured_;
};

} // namespace
} // namespace maskwise::bench

int main() {
    maskwise::bench::client c;
    return maskwise::bench::serve([&](const auto& request) { return c.answer(request); });
}
