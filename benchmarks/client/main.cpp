// bench_client: Select through oneDNN Graph, request by request (see common/serve.hpp).
//   {"do": "hello"}                       version, threads, whether Maskwise is in front
//   {"do": "load", "case": ...}           compiles, runs once, compares with the expected bytes
//   {"do": "time", "samples", "max_seconds"}
//   {"do": "compile", "case", "count"}    seconds of a first and of a repeated compile
//   {"do": "peak_resident"}               bytes

#include "client/select_call.hpp"
#include "common/serve.hpp"

#include <cstring>
#include <memory>

namespace maskwise::bench {
namespace {

constexpr int untouched = 0x5a; // what dst holds before the first call, and `expected` in gaps

class client {
public:
    json answer(const json& request) {
        const std::string what = request.at("do");
        if (what == "hello")
            return {{"version", onednn_version()},
                    {"threads", processor_count()},
                    {"maskwise", maskwise_in_front()}};
        if (what == "load") return load(parse_case(request.at("case")));
        if (what == "time") return time(request.at("samples"), request.at("max_seconds"));
        if (what == "compile") return compile(parse_case(request.at("case")), request.at("count"));
        if (what == "peak_resident") return {{"bytes", peak_resident_bytes()}};
        throw std::invalid_argument("unknown request '" + what + "'");
    }

private:
    json load(const bench_case& c) {
        call_.reset();
        try {
            call_ = std::make_unique<select_call>(device_, c);
        } catch (const refused& reason) {
            return {{"state", "refused"}, {"reason", reason.what()}};
        }
        const std::int64_t width = width_bytes(c.dtype), dst_bytes = span_elems(c.dst) * width;
        std::byte* const dst = buffers_[3].take(dst_bytes);
        std::memset(dst, untouched, static_cast<std::size_t>(dst_bytes));
        call_->bind({read("cond", c, span_elems(c.cond), 0),
                     read("src_0", c, span_elems(c.src_0) * width, 1),
                     read("src_1", c, span_elems(c.src_1) * width, 2), dst});
        call_->execute();
        call_->wait();
        const shared_file expected(c.folder + "/expected", dst_bytes, false);
        const bool right =
            std::memcmp(dst, expected.data(), static_cast<std::size_t>(dst_bytes)) == 0;
        return {{"state", right ? "right" : "wrong"}, {"maskwise", call_->is_maskwise()}};
    }

    std::byte* read(const std::string& name, const bench_case& c, std::int64_t bytes,
                    std::size_t buffer) {
        const shared_file file(c.folder + '/' + name, bytes, false);
        std::byte* const to = buffers_[buffer].take(bytes);
        std::memcpy(to, file.data(), static_cast<std::size_t>(bytes));
        return to;
    }

    json time(int samples, double max_seconds) {
        if (!call_) throw std::invalid_argument("nothing is loaded");
        return {{"samples", take_samples([this] { call_->execute(); }, [this] { call_->wait(); },
                                         samples, max_seconds)}};
    }

    // Each first compile is of a shape that this process has not seen. All graphs are built before:
    // what building leaves in the heap (small free blocks, which the next large allocation merges,
    // up to 30 us on oneDNN 3.2) is no part of compiling.
    json compile(bench_case c, int count) {
        std::vector<std::unique_ptr<select_call>> calls;
        for (int i = 0; i < count; ++i) {
            for (operand* o : {&c.cond, &c.src_0, &c.src_1, &c.dst})
                if (!o->extents.empty() && o->extents[0] > 1) ++o->extents[0];
            calls.push_back(
                std::make_unique<select_call>(device_, c, select_call::compiled::later));
        }
        std::vector<double> first, again;
        for (const auto& call : calls) {
            first.push_back(call->time_compile(1));
            again.push_back(call->time_compile(20));
        }
        return {{"first", first}, {"again", again}};
    }

    device device_;
    std::array<arena, 4> buffers_;
    std::unique_ptr<select_call> call_;
};

} // namespace
} // namespace maskwise::bench

int main() {
    try {
        maskwise::bench::client c;
        return maskwise::bench::serve([&c](const auto& request) { return c.answer(request); });
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_client: %s\n", error.what());
        return 1;
    }
}
