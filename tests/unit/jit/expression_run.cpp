#include "jit/expression_run.hpp"

#include "jit/expression_oracle.hpp"
#include "support/elements.hpp"
#include "support/guarded_buffer.hpp"

#include <cstring>

namespace maskwise::test {
namespace {

// Rows of elements in guarded memory; a row may be read again (stride 0) or be followed by a gap.
class operand {
public:
    operand(generator& random, data_type type, column_class columns, const trial& how, bool is_dst)
        : type_(type), width_(width_bytes(type)), moves_(columns == column_class::unit) {
        const auto row = static_cast<std::int64_t>(width_) * (moves_ ? how.columns : 1);
        const std::int64_t gap = one_in(random, 3) ? draw(random, 1, 40) : 0;
        row_bytes_ = !is_dst && one_in(random, 4) ? 0 : row + gap;
        const auto edge =
            one_in(random, 2) ? guarded_buffer::edge::front : guarded_buffer::edge::back;
        memory_ = guarded_buffer(static_cast<std::size_t>((how.rows - 1) * row_bytes_ + row), edge);
        fill_random(random, memory_.data(), memory_.size());
    }

    void fill(generator& random, const trial& how) {
        for (std::int64_t r = 0; r < how.rows; ++r)
            for (std::int64_t c = 0; c < (moves_ ? how.columns : 1); ++c) {
                const std::uint32_t bits = draw_element(random, type_);
                std::memcpy(at(r, c), &bits, width_);
            }
    }

    std::byte* at(std::int64_t row, std::int64_t column) const {
        return data() + row * row_bytes_ +
               (moves_ ? column * static_cast<std::int64_t>(width_) : 0);
    }

    std::uint32_t element(const std::byte* from) const {
        std::uint32_t bits = 0;
        std::memcpy(&bits, from, width_);
        return bits;
    }

    std::byte* data() const { return memory_.data(); }
    std::size_t size() const { return memory_.size(); }
    std::int64_t row_bytes() const { return row_bytes_; }
    std::size_t width() const { return width_; }

private:
    data_type type_;
    std::size_t width_;
    bool moves_;
    std::int64_t row_bytes_ = 0;
    guarded_buffer memory_;
};

class run_of_expression {
public:
    run_of_expression(generator& random, const jit::expression& what, const trial& how)
        : what_(what), how_(how) {
        for (const jit::node& each : what.nodes) {
            if (each.kind != jit::node_kind::input) continue;
            const bool is_dst = static_cast<int>(inputs_.size()) == how.in_place;
            inputs_.emplace_back(random, each.type, how.inputs[inputs_.size()], how, is_dst);
            inputs_.back().fill(random, how);
        }
        if (how.in_place < 0) own_dst_.emplace(random, what.result, column_class::unit, how, true);
        expect();
    }

    testing::AssertionResult check(isa target) {
        const auto code = compile(what_, how_.inputs, how_.stores, target);
        jit::expression_tile tile{};
        for (std::size_t i = 0; i < inputs_.size(); ++i) {
            tile.at[i] = inputs_[i].data();
            tile.row_bytes[i] = inputs_[i].row_bytes();
        }
        tile.at[jit::dst_operand] = dst().data();
        tile.row_bytes[jit::dst_operand] = dst().row_bytes();
        tile.rows = how_.rows;
        tile.columns = how_.columns;
        const std::vector<std::byte> before(dst().data(), dst().data() + dst().size());
        code->run()(&tile);
        return compare(before);
    }

private:
    const operand& dst() const {
        return own_dst_ ? *own_dst_ : inputs_[static_cast<std::size_t>(how_.in_place)];
    }

    void expect() {
        std::vector<std::uint32_t> elements(inputs_.size());
        for (std::int64_t r = 0; r < how_.rows; ++r)
            for (std::int64_t c = 0; c < how_.columns; ++c) {
                for (std::size_t i = 0; i < inputs_.size(); ++i)
                    elements[i] = inputs_[i].element(inputs_[i].at(r, c));
                expected_.push_back(evaluate(what_, elements));
            }
    }

    testing::AssertionResult compare(std::vector<std::byte> before) const {
        for (std::int64_t r = 0; r < how_.rows; ++r)
            for (std::int64_t c = 0; c < how_.columns; ++c) {
                const std::byte* element = dst().at(r, c);
                const auto number = static_cast<std::size_t>(r * how_.columns + c);
                const std::string wrong =
                    complain(expected_[number], dst().element(element), what_.result);
                if (!wrong.empty())
                    return testing::AssertionFailure()
                           << "row " << r << " column " << c << ": " << wrong;
                std::memcpy(before.data() + (element - dst().data()), element, dst().width());
            }
        if (std::memcmp(before.data(), dst().data(), before.size()) != 0)
            return testing::AssertionFailure() << "bytes between dst's rows were written";
        return testing::AssertionSuccess();
    }

    const jit::expression& what_;
    const trial& how_;
    std::vector<operand> inputs_;
    std::optional<operand> own_dst_;
    std::vector<allowed> expected_;
};

std::string describe(const jit::expression& what, const trial& how) {
    std::string text = to_string(what) + ", " + std::to_string(how.rows) + " x " +
                       std::to_string(how.columns) + ", inputs ";
    for (const column_class each : how.inputs) text += each == column_class::unit ? 'u' : 'z';
    if (how.stores == store_policy::stream) text += ", streamed";
    if (how.in_place >= 0) text += ", in place of input " + std::to_string(how.in_place);
    return text;
}

} // namespace

std::vector<isa> jit_targets() {
    std::vector<isa> found;
    for (const isa each : supported_isas(native_cpu()))
        if (jit::can_compile(each)) found.push_back(each);
    return found;
}

std::uint32_t draw_element(generator& random, data_type type) {
    const auto any = static_cast<std::uint32_t>(random());
    if (type == data_type::boolean) return one_in(random, 2) ? any & 0xFF : 0;
    const std::int64_t kind = draw(random, 0, 9);
    if (kind == 0) return any;
    static constexpr double special[] = {0.0,  -0.0,  1.0,   -1.0, 0.5,
                                         1e30, -1e30, 1e-40, 88.7, -103.0};
    const double number = kind == 1
                              ? special[draw(random, 0, 9)]
                              : std::normal_distribution<double>(0, kind == 2 ? 40 : 2)(random);
    return static_cast<std::uint32_t>(encode(number, element_of(type)));
}

testing::AssertionResult try_expression(generator& random, const jit::expression& what,
                                        const trial& how, isa target) {
    const testing::AssertionResult result = run_of_expression(random, what, how).check(target);
    if (result) return result;
    return testing::AssertionFailure() << result.message() << "\n"
                                       << to_string(target) << ", " << describe(what, how);
}

} // namespace maskwise::test
