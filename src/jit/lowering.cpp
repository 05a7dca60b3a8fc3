#include "jit/lowering.hpp"

#include "tensor/data_type.hpp"

namespace maskwise::jit {
namespace {

constexpr std::size_t forms = 3;

class lowering {
public:
    lowering(const expression& what, std::span<const column_class> inputs)
        : what_(what), inputs_(inputs), known_(what.nodes.size()), as_bits_(what.nodes.size()) {
        for (auto& each : known_) each.fill(-1);
    }

    std::vector<step> run() {
        const int root = static_cast<int>(what_.nodes.size()) - 1;
        const bool wants_bits = is_16_bit_float(what_.result) && mark_bits();
        value(root, wants_bits ? form::bits : form::number);
        note_uses();
        return std::move(steps_);
    }

private:
    const node& at(int number) const { return what_.nodes[static_cast<std::size_t>(number)]; }
    step& made(int value) { return steps_[static_cast<std::size_t>(value)]; }

    // Marks what reaches dst through selects alone; whether an input of dst's type does.
    bool mark_bits() {
        bool found = false;
        as_bits_.back() = true;
        for (std::size_t i = what_.nodes.size(); i-- > 0;) {
            const node& from = what_.nodes[i];
            if (!as_bits_[i]) continue;
            if (from.kind == node_kind::select)
                for (const int side : {from.arguments[1], from.arguments[2]})
                    as_bits_[static_cast<std::size_t>(side)] = true;
            as_bits_[i] = from.kind == node_kind::input && from.type == what_.result;
            found = found || as_bits_[i];
        }
        return found;
    }

    int value(int number, form wanted) {
        int& known = known_[static_cast<std::size_t>(number)][static_cast<std::size_t>(wanted)];
        if (known < 0) known = make(number, wanted);
        return known;
    }

    int make(int number, form wanted) {
        const node& from = at(number);
        if (from.kind == node_kind::input) return load(number, wanted);
        if (from.kind == node_kind::type_cast && from.type == data_type::f32 &&
            wanted == form::number)
            return value(from.arguments[0], wanted);
        if (wanted == form::bits && from.kind != node_kind::select) return encode(number);
        step next{step_kind::compute, wanted, number, 0, from.type};
        for (std::size_t i = 0; i < argument_count(from.kind); ++i) {
            const bool is_truth = from.kind == node_kind::select && i == 0;
            const bool moves_bits = from.kind == node_kind::select && !is_truth;
            const form argument = is_truth ? form::truth : moves_bits ? wanted : form::number;
            next.arguments[i] = value(from.arguments[i], argument);
        }
        return append(next);
    }

    // Each input is loaded once: where its bits are wanted as well, the number is made from them.
    int load(int number, form wanted) {
        const node& from = at(number);
        const bool has_bits = as_bits_[static_cast<std::size_t>(number)];
        if (wanted == form::number && has_bits) {
            const int bits = value(number, form::bits);
            return append({step_kind::decode, form::number, number, 0, from.type, {bits, -1, -1}});
        }
        if (wanted == form::bits && !has_bits) return encode(number);
        return append({step_kind::load, wanted, number, input_number(number), from.type});
    }

    int encode(int number) {
        const node& from = at(number);
        const bool is_cast = from.kind == node_kind::type_cast && from.type == what_.result;
        const int argument = value(is_cast ? from.arguments[0] : number, form::number);
        return append({step_kind::encode, form::bits, number, 0, what_.result, {argument, -1, -1}});
    }

    int append(step next) {
        next.is_invariant =
            next.kind != step_kind::load || inputs_[next.input] == column_class::zero;
        for (const int argument : next.arguments)
            if (argument >= 0) next.is_invariant = next.is_invariant && made(argument).is_invariant;
        steps_.push_back(next);
        return static_cast<int>(steps_.size()) - 1;
    }

    std::size_t input_number(int number) const {
        std::size_t before = 0;
        for (int i = 0; i < number; ++i) before += at(i).kind == node_kind::input ? 1U : 0U;
        return before;
    }

    void note_uses() {
        for (std::size_t i = 0; i < steps_.size(); ++i)
            for (const int argument : steps_[i].arguments)
                if (argument >= 0) made(argument).last_use = static_cast<int>(i);
        for (const step& user : steps_)
            for (const int argument : user.arguments)
                if (argument >= 0 && made(argument).is_invariant && !user.is_invariant)
                    made(argument).last_use = -1;
    }

    const expression& what_;
    std::span<const column_class> inputs_;
    std::vector<std::array<int, forms>> known_;
    std::vector<bool> as_bits_; // inputs whose bits are wanted
    std::vector<step> steps_;
};

} // namespace

std::vector<step> lower(const expression& what, std::span<const column_class> inputs) {
    return lowering(what, inputs).run();
}

} // namespace maskwise::jit
