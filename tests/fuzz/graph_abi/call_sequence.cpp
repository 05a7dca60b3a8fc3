#include "call_sequence.hpp"

#include "api.hpp"

#include <array>
#include <iterator>

namespace maskwise::fuzz {
namespace {

using test::draw;
using test::one_in;

// The handles of the plugin and of oneDNN alone. Null once destroyed.
template <typename Handle>
using both = std::array<Handle, 2>;

class player {
public:
    explicit player(generator& random) : random_(random) {
        descriptions_ = draw_graph(random).ops;
        ops_.resize(descriptions_.size());
    }

    ~player() {
        for (auto& op : ops_) destroy(op, &api::op_destroy);
        for (auto& graph : graphs_) destroy(graph, &api::graph_destroy);
    }
    player(const player&) = delete;
    player& operator=(const player&) = delete;

    std::string play() {
        for (auto calls = draw(random_, 4, 60); calls > 0 && wrong_.empty(); --calls) step();
        return wrong_;
    }

private:
    // Calls the plugin and oneDNN alone. Records the first call whose statuses differ.
    template <typename Call>
    int call(const char* name, const Call& of_side) {
        const int status = of_side(with_plugin(), 0U), other = of_side(real(), 1U);
        if (status != other && wrong_.empty())
            wrong_ = std::string(name) + " returns " + std::to_string(status) + ", oneDNN alone " +
                     std::to_string(other);
        return status;
    }

    template <typename Handle, typename Function>
    void destroy(both<Handle>& handle, Function api::*function) {
        if (handle[0] == nullptr) return;
        call("destroy",
             [&](const api& side, std::size_t i) { return (side.*function)(handle[i]); });
        handle = {};
    }

    // Both libraries must set the same output.
    template <typename Value, typename Handle, typename Function>
    void query(const char* name, const both<Handle>& handle, Function api::*function) {
        both<Value> outputs{};
        call(name, [&](const api& side, std::size_t i) {
            return (side.*function)(handle[i], &outputs[i]);
        });
        if (outputs[0] != outputs[1] && wrong_.empty())
            wrong_ = std::string(name) + " sets another value than oneDNN alone";
    }

    void step() {
        const auto index = static_cast<std::size_t>(draw(random_, 0, std::ssize(ops_) - 1));
        auto& graph = graphs_[static_cast<std::size_t>(draw(random_, 0, 1))];
        if (ops_[index][0] == nullptr)
            create(ops_[index], descriptions_[index]);
        else if (graph[0] == nullptr)
            call("graph_create", [&](const api& side, std::size_t i) {
                return side.graph_create(&graph[i], dnnl_cpu);
            });
        else if (one_in(random_, 2))
            change(ops_[index], descriptions_[index]);
        else
            use(ops_[index], graph);
    }

    void create(both<dnnl_graph_op_t>& op, const op_description& description) {
        call("op_create", [&](const api& side, std::size_t i) {
            return side.op_create(&op[i], description.id, description.kind, "op");
        });
        // Some operators get their tensors later or never.
        if (one_in(random_, 4)) return;
        for (const auto& input : description.inputs) add(op, input, &api::op_add_input);
        for (const auto& output : description.outputs) add(op, output, &api::op_add_output);
    }

    template <typename Function>
    void add(const both<dnnl_graph_op_t>& op, const logical_tensor& tensor,
             Function api::*function) {
        call("op_add",
             [&](const api& side, std::size_t i) { return (side.*function)(op[i], &tensor); });
    }

    void change(const both<dnnl_graph_op_t>& op, const op_description& description) {
        const auto kind = draw(random_, 0, 5);
        if (kind == 0 && !description.inputs.empty())
            add(op, description.inputs[0], &api::op_add_input);
        if (kind == 1 && !description.outputs.empty())
            add(op, description.outputs[0], &api::op_add_output);
        if (kind == 2) set_text(op, description.auto_broadcast);
        if (kind == 3) set_number(op);
        if (kind == 4) query<std::size_t>("op_get_id", op, &api::op_get_id);
        if (kind == 5) query<dnnl_graph_op_kind_t>("op_get_kind", op, &api::op_get_kind);
    }

    void set_text(const both<dnnl_graph_op_t>& op, const std::string& text) {
        const auto count = static_cast<std::size_t>(one_in(random_, 20) ? 0 : 1);
        call("op_set_attr_str", [&](const api& side, std::size_t i) {
            return side.op_set_attr_str(op[i], dnnl_graph_op_attr_auto_broadcast, text.c_str(),
                                        count);
        });
    }

    void set_number(const both<dnnl_graph_op_t>& op) {
        const std::int64_t axis = draw(random_, -5, 5);
        const std::uint8_t flag = one_in(random_, 2) ? 1 : 0;
        const bool is_axis = one_in(random_, 2);
        call("op_set_attr", [&](const api& side, std::size_t i) {
            return is_axis ? side.op_set_attr_s64(op[i], dnnl_graph_op_attr_axis, &axis, 1)
                           : side.op_set_attr_bool(op[i], dnnl_graph_op_attr_keep_dims, &flag, 1);
        });
    }

    void use(both<dnnl_graph_op_t>& op, both<dnnl_graph_graph_t>& graph) {
        switch (draw(random_, 0, 7)) {
        case 0:
            return destroy(op, &api::op_destroy);
        case 1:
            return destroy(graph, &api::graph_destroy);
        case 2:
            call("graph_finalize",
                 [&](const api& side, std::size_t i) { return side.graph_finalize(graph[i]); });
            return;
        case 3:
            return query<std::uint8_t>("graph_is_finalized", graph, &api::graph_is_finalized);
        case 4:
            return query<std::size_t>("graph_get_partition_num", graph,
                                      &api::graph_get_partition_num);
        default:
            call("add_op",
                 [&](const api& side, std::size_t i) { return side.add_op(graph[i], op[i]); });
        }
    }

    generator& random_;
    std::vector<op_description> descriptions_;
    std::vector<both<dnnl_graph_op_t>> ops_;
    std::array<both<dnnl_graph_graph_t>, 2> graphs_{};
    std::string wrong_;
};

} // namespace

std::string play_call_sequence(generator& random) {
    return player(random).play();
}

} // namespace maskwise::fuzz
