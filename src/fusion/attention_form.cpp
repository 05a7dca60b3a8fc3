#include "fusion/attention_form.hpp"

#include "base/error.hpp"
#include "tensor/data_type.hpp"
#include "tensor/tensor_desc.hpp"

namespace maskwise::fusion {
namespace {

class form_maker {
public:
    explicit form_maker(const std::function<bool(std::size_t)>& is_number)
        : is_number_(is_number) {}

    void add(const row_change& step) {
        require(step.op == row_operator::tanh && !form_.has_tanh && !form_.bias && !form_.fill,
                "attention does not support this unary operator or rounding at this step");
        form_.has_tanh = true;
    }

    void add(const row_combine& step) {
        if (step.op == row_operator::add) return add_bias(step.side);
        require(step.op == row_operator::divide || step.op == row_operator::multiply,
                "attention cannot combine scores by this operator");
        require(is_number_(step.side), "a scale of the scores is not one number");
        require(!form_.bias, "a bias is scaled");
        factors().push_back(step);
    }

    void add(const row_select& step) {
        require(!form_.fill, "scores are masked twice");
        require(is_number_(step.side), "the fill of masked scores is not one number");
        form_.fill = step.side;
        form_.cond = step.cond;
        form_.cond_masks = step.op == row_operator::select_masked;
    }

    attention_form form() && { return std::move(form_); }

private:
    static void require(bool holds, const char* reason_against) {
        if (!holds) throw argument_error(reason_against);
    }

    std::vector<row_combine>& factors() {
        if (form_.fill) return form_.on_fill;
        return form_.has_tanh ? form_.cap : form_.scale;
    }

    void add_bias(std::size_t side) {
        require(!form_.bias, "two biases are added to the scores");
        form_.bias = side;
        form_.bias_on_fill = form_.fill.has_value();
    }

    const std::function<bool(std::size_t)>& is_number_;
    attention_form form_;
};

score_factor factor_of(const row_combine& step, std::span<const float> operands) {
    return {operands[step.side], step.op == row_operator::divide};
}

float scaled(float value, std::span<const row_combine> factors, std::span<const float> operands) {
    for (const row_combine& step : factors) {
        const auto [number, divides] = factor_of(step, operands);
        value = divides ? value / number : value * number;
    }
    return value;
}

score_steps steps_of(const attention_form& form, std::span<const float> operands) {
    score_steps steps;
    const auto append = [&](std::span<const row_combine> factors) {
        for (const row_combine& factor : factors) steps.append(factor_of(factor, operands));
    };
    append(form.scale);
    if (form.has_tanh) steps.append_tanh();
    append(form.cap);
    append(form.on_fill);
    return steps;
}

} // namespace

attention_form make_attention_form(const row_chain& chain,
                                   const std::function<bool(std::size_t)>& is_number) {
    form_maker maker(is_number);
    for (const auto& step : chain.steps)
        std::visit([&](const auto& kind) { maker.add(kind); }, step);
    return std::move(maker).form();
}

// Attention computes soft_cap * tanh(scale * score / soft_cap), so numbers.scale includes the
// factor soft_cap. If numbers.scale or soft_cap overflows f32, only `steps` is valid.
attention_numbers attention_numbers_of(const attention_form& form,
                                       std::span<const float> operands) {
    attention_numbers numbers;
    numbers.steps = steps_of(form, operands);
    if (form.has_tanh)
        numbers.soft_cap = scaled(scaled(1, form.cap, operands), form.on_fill, operands);
    numbers.scale = scaled(1, form.scale, operands);
    numbers.scale = form.has_tanh ? numbers.scale * numbers.soft_cap
                                  : scaled(numbers.scale, form.on_fill, operands);
    if (form.fill) numbers.fill = scaled(operands[*form.fill], form.on_fill, operands);
    return numbers;
}

} // namespace maskwise::fusion
