#include "checked_run.hpp"

#include "support/oracle.hpp"

#include "exec/run_select.hpp"
#include "exec/tile_walk.hpp"
#include "plan/select_plan.hpp"

#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

namespace maskwise::test {
namespace {

tensor_desc describe(const view& operand, data_type type) {
    tensor_desc desc{type, {}, {}};
    for (const std::int64_t extent : operand.extents) desc.extents.push_back(extent);
    for (const std::int64_t stride : operand.strides_bytes) desc.strides_bytes.push_back(stride);
    return desc;
}

data_type type_of_width(std::int64_t width_bytes) {
    switch (width_bytes) {
    case 1:
        return data_type::u8;
    case 2:
        return data_type::bf16;
    case 4:
        return data_type::f32;
    case 8:
        return data_type::f64;
    default:
        return data_type::complex128;
    }
}

// The filled buffers of one case, and the expected bytes of dst.
class select_data {
public:
    select_data(generator& random, select_case& layouts) : layouts_(layouts) {
        cond_ = placed(random, layouts.cond, 1);
        dst_ = placed(random, layouts.dst, layouts.width_bytes);
        src_0_ = placed_source(random, layouts.src_0, 0);
        src_1_ = placed_source(random, layouts.src_1, 1);
        fill_mask(random, cond_->data(), cond_->size());
        sources_ = {bytes(*src_0_), bytes(*src_1_)};
        expect();
    }

    const char* fault() const {
        if (!holds(*dst_, expected_)) return "dst is wrong";
        if (layouts_.in_place != 0 && !holds(*src_0_, sources_[0])) return "src_0 was written";
        if (layouts_.in_place != 1 && !holds(*src_1_, sources_[1])) return "src_1 was written";
        return nullptr;
    }

private:
    using buffer = std::shared_ptr<guarded_buffer>;

    static std::vector<std::byte> bytes(const guarded_buffer& from) {
        std::vector<std::byte> copy(from.size());
        if (!copy.empty()) std::memcpy(copy.data(), from.data(), copy.size());
        return copy;
    }

    static bool holds(const guarded_buffer& buffer, const std::vector<std::byte>& wanted) {
        return wanted.empty() || std::memcmp(buffer.data(), wanted.data(), wanted.size()) == 0;
    }

    static buffer placed(generator& random, view& operand, std::int64_t width) {
        return std::make_shared<guarded_buffer>(place(random, operand, width));
    }

    buffer placed_source(generator& random, view& operand, int which) {
        const buffer separate = placed(random, operand, layouts_.width_bytes);
        if (layouts_.in_place != which) return separate;
        operand.data = layouts_.dst.data;
        return dst_;
    }

    // Runs the reference on dst's buffer, saves the result and restores the old bytes.
    void expect() {
        const auto before = bytes(*dst_);
        select_reference(layouts_.cond, layouts_.src_0, layouts_.src_1, layouts_.dst,
                         layouts_.width_bytes);
        expected_ = bytes(*dst_);
        if (!before.empty()) std::memcpy(dst_->data(), before.data(), before.size());
    }

    const select_case& layouts_;
    buffer cond_, src_0_, src_1_, dst_;
    std::array<std::vector<std::byte>, 2> sources_;
    std::vector<std::byte> expected_;
};

// Splits the tiles at random positions, even in cases that run_select does not split.
void run_in_parts(generator& random, const select_plan& plan, const select_case& layouts) {
    const operand_pointers pointers{layouts.cond.data, layouts.src_0.data, layouts.src_1.data,
                                    layouts.dst.data};
    const select_fn kernel = layouts.in_place < 0 ? plan.run : plan.run_plain;
    for (std::int64_t first = 0; first < plan.tiles;) {
        const std::int64_t last = draw(random, first + 1, plan.tiles);
        run_tiles(plan, kernel, pointers, first, last);
        first = last;
    }
}

} // namespace

select_desc describe(const select_case& layouts) {
    const data_type type = type_of_width(layouts.width_bytes);
    return {describe(layouts.cond, data_type::boolean), describe(layouts.src_0, type),
            describe(layouts.src_1, type), describe(layouts.dst, type)};
}

std::string checked_run(generator& random, select_case layouts, isa target) {
    const std::int64_t stream_from =
        one_in(random, 2) ? 0 : std::numeric_limits<std::int64_t>::max();
    const auto plan = build_plan(describe(layouts), target, stream_from);
    const select_data data(random, layouts);
    if (one_in(random, 2))
        run_in_parts(random, *plan, layouts);
    else
        run_select(*plan, layouts.cond.data, layouts.src_0.data, layouts.src_1.data,
                   layouts.dst.data);
    const char* wrong = data.fault();
    if (wrong == nullptr) return {};
    return std::string(wrong) + '\n' + to_string(layouts) + '\n' + maskwise::to_string(*plan);
}

} // namespace maskwise::test
