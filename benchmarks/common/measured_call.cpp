#include "common/measured_call.hpp"

#include "common/serve.hpp"

#include <cstring>
#include <stdexcept>

namespace maskwise::bench {
namespace {

// dst is filled with this byte before the first call. The file `expected` has the byte in the gaps
// between elements, so a write into a gap is detected.
constexpr int untouched = 0x5a;

} // namespace

json measured_call::load(const bench_case& c, std::unique_ptr<timed_call> call) {
    call_ = std::move(call);
    const std::int64_t width = width_bytes(c.dtype), dst_bytes = span_elems(c.dst) * width;
    std::byte* const dst = buffers_[3].take(dst_bytes);
    std::memset(dst, untouched, static_cast<std::size_t>(dst_bytes));
    call_->bind({read("cond", c, span_elems(c.cond), 0),
                 read("src_0", c, span_elems(c.src_0) * width, 1),
                 read("src_1", c, span_elems(c.src_1) * width, 2), dst});
    call_->execute();
    call_->wait();
    const auto expected = read_file(c.folder + "/expected", dst_bytes);
    const bool right = std::memcmp(dst, expected.data(), expected.size()) == 0;
    return {{"state", right ? "right" : "wrong"}};
}

std::byte* measured_call::read(const std::string& name, const bench_case& c, std::int64_t bytes,
                               std::size_t buffer) {
    std::byte* const to = buffers_[buffer].take(bytes);
    read_file(c.folder + '/' + name, to, bytes);
    return to;
}

json measured_call::time(const json& request) {
    if (!call_) throw std::invalid_argument("nothing is loaded");
    return {{"samples", take_samples([this] { call_->execute(); }, [this] { call_->wait(); },
                                     request.at("samples"), request.at("max_seconds"))}};
}

} // namespace maskwise::bench
