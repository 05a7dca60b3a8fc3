// bench_client-engine: Select by the engine's own functions, below any front end. The requests are
// those of bench_client, without "compile"; "load" also answers the plan's line.
//   {"do": "count"}   bytes of dst, of its cache lines that the case changes in place, and of those
//                     that a call on one thread writes

#include "common/measured_call.hpp"
#include "common/serve.hpp"
#include "engine/written_lines.hpp"

#include "exec/run_select.hpp"
#include "plan/select_plan.hpp"

#include <tbb/global_control.h>

#include <algorithm>
#include <cstring>

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
    std::byte* dst() const { return static_cast<std::byte*>(buffers_[3]); }

    void bind(const std::array<void*, 4>& buffers) override { buffers_ = buffers; }
    void execute() override {
        run_select(*plan_, buffers_[0], buffers_[1], buffers_[2], buffers_[3]);
    }

private:
    std::shared_ptr<const select_plan> plan_;
    std::array<void*, 4> buffers_{};
};

// Of the cache lines that differ between two files of the case.
std::int64_t changed_bytes(const bench_case& c, std::int64_t bytes) {
    const auto before = read_file(c.folder + "/src_0", bytes),
               after = read_file(c.folder + "/expected", bytes);
    constexpr std::int64_t line = 64;
    std::int64_t changed = 0;
    for (std::int64_t at = 0; at < bytes; at += line) {
        const auto size = static_cast<std::size_t>(std::min(line, bytes - at));
        if (std::memcmp(before.data() + at, after.data() + at, size) != 0) changed += line;
    }
    return changed;
}

class client {
public:
    json answer(const json& request) {
        const std::string what = request.at("do");
        if (what == "hello") return {{"version", "engine"}, {"threads", processor_count()}};
        if (what == "time") return measured_.time(request);
        if (what == "peak_resident") return {{"bytes", peak_resident_bytes()}};
        if (what == "load") return load(parse_case(request.at("case")));
        if (what == "count") return count();
        throw std::invalid_argument("unknown request '" + what + "'");
    }

private:
    json load(const bench_case& c) {
        auto call = std::make_unique<engine_call>(c);
        call_ = call.get();
        case_ = c;
        json answered = measured_.load(c, std::move(call));
        answered["maskwise"] = true;
        answered["plan"] = to_string(call_->plan());
        return answered;
    }

    json count() const {
        if (!call_ || !case_.in_place) throw std::invalid_argument("no case in place is loaded");
        const std::int64_t bytes = span_elems(case_.dst) * width_bytes(case_.dtype);
        const tbb::global_control one(tbb::global_control::max_allowed_parallelism, 1);
        const auto written = written_bytes(call_->dst(), bytes, [this] { call_->execute(); });
        return {{"dst", bytes}, {"changed", changed_bytes(case_, bytes)}, {"written", written}};
    }

    measured_call measured_;
    engine_call* call_ = nullptr; // measured_'s
    bench_case case_;
};

} // namespace
} // namespace maskwise::bench

int main() {
    maskwise::bench::client c;
    return maskwise::bench::serve([&](const auto& request) { return c.answer(request); });
}
