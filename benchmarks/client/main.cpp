// bench_client: Select through oneDNN Graph, request by request (see common/serve.hpp).
//   {"do": "hello"}                       version, threads, whether Maskwise is in front
//   {"do": "load", "case": ...}           compiles, runs once, compares with the expected bytes
//   {"do": "time", "samples", "max_seconds"}
//   {"do": "compile", "case", "count"}    seconds of a first and of a repeated compile
//   {"do": "peak_resident"}               bytes

#include "client/select_call.hpp"
#include "common/serve.hpp"

#include <memory>

namespace maskwise::bench {
namespace {

class client {
public:
    json answer(const json& request) {
        const std::string what = request.at("do");
        if (what == "hello")
            return {{"version", onednn_version()},
                    {"threads", processor_count()},
                    {"maskwise", maskwise_in_front()}};
        if (what == "load") return load(parse_case(request.at("case")));
        if (what == "time") return measured_.time(request);
        if (what == "compile") return compile(parse_case(request.at("case")), request.at("count"));
        if (what == "peak_resident") return {{"bytes", peak_resident_bytes()}};
        throw std::invalid_argument("unknown request '" + what + "'");
    }

private:
    json load(const bench_case& c) {
        try {
            auto call = std::make_unique<select_call>(device_, c);
            const bool maskwise = call->is_maskwise();
            json answer = measured_.load(c, std::move(call));
            answer["maskwise"] = maskwise;
            return answer;
        } catch (const refused& reason) {
            return {{"state", "refused"}, {"reason", reason.what()}};
        }
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
    measured_call measured_;
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
