// bench_client: runs Select through oneDNN Graph, as an application does, and answers requests
// (common/serve.hpp). This program is not linked with Maskwise; the plugin may be preloaded.
//   {"do": "hello"}                       version, threads, whether the plugin is loaded
//   {"do": "load", "case": ...}           compiles, runs once, compares with the expected bytes
//   {"do": "time", "samples", "max_seconds"}   seconds per call
//   {"do": "compile", "case", "count"}    seconds per first compile and per repeated compile
//   {"do": "peak_resident"}               largest resident memory so far, in bytes

#include "common/measured_call.hpp"
#include "common/serve.hpp"

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl_graph.hpp>

#include <chrono>

namespace maskwise::bench {
namespace {

using dnnl::graph::logical_tensor;

void check(dnnl_status_t status, const char* call) {
    dnnl::error::wrap_c_api(status, call);
}

using owns_function = int (*)(const_dnnl_graph_compiled_partition_t);

owns_function owns() {
    static const auto function =
        reinterpret_cast<owns_function>(dlsym(RTLD_DEFAULT, "maskwise_onednn_owns"));
    return function;
}

logical_tensor::data_type type_of(const std::string& dtype) {
    if (dtype == "f32") return logical_tensor::data_type::f32;
    if (dtype == "bf16") return logical_tensor::data_type::bf16;
    if (dtype == "f16") return logical_tensor::data_type::f16;
    throw std::invalid_argument("oneDNN Graph's Select has no " + dtype);
}

dnnl_graph_logical_tensor_t describe(std::size_t id, logical_tensor::data_type type,
                                     const operand& o) {
    dnnl_graph_logical_tensor_t tensor;
    check(dnnl_graph_logical_tensor_init_with_strides(
              &tensor, id, static_cast<dnnl_data_type_t>(type), static_cast<int>(o.extents.size()),
              o.extents.data(), o.strides_elems.data(), dnnl_graph_tensor_property_undef),
          "logical_tensor_init_with_strides");
    return tensor;
}

// Compiles and executes with oneDNN's C functions, because its C++ classes allocate in every call.
class select_call : public timed_call {
public:
    // Throws dnnl::error unless oneDNN returns exactly one supported partition, and
    // std::invalid_argument if oneDNN Graph's Select lacks the type.
    select_call(const dnnl::engine& engine, const dnnl::stream& stream, const bench_case& c)
        : engine_(engine), stream_(stream) {
        const auto type = type_of(c.dtype);
        tensors_ = {describe(0, logical_tensor::data_type::boolean, c.cond),
                    describe(1, type, c.src_0), describe(2, type, c.src_1),
                    describe(3, type, c.dst)};
        const std::vector<logical_tensor> t(tensors_.begin(), tensors_.end());
        graph_.add_op({0, dnnl::graph::op::kind::Select, {t[0], t[1], t[2]}, {t[3]}, "select"});
        graph_.finalize();
        const auto partitions = graph_.get_partitions();
        if (partitions.size() != 1)
            throw dnnl::error(dnnl_unimplemented, "a Select is not one partition");
        partition_ = partitions[0];
        if (!partition_.is_supported())
            throw dnnl::error(dnnl_unimplemented, "the partition is not supported");
    }

    dnnl::graph::compiled_partition make() const {
        dnnl_graph_compiled_partition_t compiled = nullptr;
        check(dnnl_graph_compiled_partition_create(&compiled, partition_.get()),
              "compiled_partition");
        dnnl::graph::compiled_partition owner(compiled);
        std::array<const dnnl_graph_logical_tensor_t*, 3> inputs{&tensors_[0], &tensors_[1],
                                                                 &tensors_[2]};
        const dnnl_graph_logical_tensor_t* output = &tensors_[3];
        check(dnnl_graph_partition_compile(partition_.get(), compiled, inputs.size(), inputs.data(),
                                           1, &output, engine_.get()),
              "partition_compile");
        return owner;
    }

    // Compiles, and returns whether Maskwise executes the compiled partition.
    bool compile() {
        compiled_ = make();
        return owns() && owns()(compiled_.get()) == 1;
    }

    // Returns the mean seconds of `count` compiles with the same tensors.
    double time_compile(int count) const {
        std::chrono::duration<double> spent{};
        for (int i = 0; i < count; ++i) {
            const auto begin = std::chrono::steady_clock::now();
            const auto again = make();
            spent += std::chrono::steady_clock::now() - begin;
        }
        return spent.count() / count;
    }

    void bind(const std::array<void*, 4>& buffers) override {
        for (std::size_t i = 0; i < buffers.size(); ++i)
            bound_[i] = {logical_tensor(tensors_[i]), engine_, buffers[i]};
    }

    void execute() override {
        std::array<const_dnnl_graph_tensor_t, 3> inputs{bound_[0].get(), bound_[1].get(),
                                                        bound_[2].get()};
        const_dnnl_graph_tensor_t output = bound_[3].get();
        check(dnnl_graph_compiled_partition_execute(compiled_.get(), stream_.get(), inputs.size(),
                                                    inputs.data(), 1, &output),
              "execute");
    }

    void wait() override { check(dnnl_stream_wait(stream_.get()), "stream_wait"); }

private:
    dnnl::engine engine_;
    dnnl::stream stream_;
    std::array<dnnl_graph_logical_tensor_t, 4> tensors_{};
    dnnl::graph::graph graph_{dnnl::engine::kind::cpu};
    dnnl::graph::partition partition_;
    dnnl::graph::compiled_partition compiled_;
    std::array<dnnl::graph::tensor, 4> bound_;
};

class client {
public:
    json answer(const json& request) {
        const std::string request_name = request.at("do");
        const dnnl_version_t& v = *dnnl_version();
        if (request_name == "hello")
            return {{"version", std::to_string(v.major) + '.' + std::to_string(v.minor) + '.' +
                                    std::to_string(v.patch)},
                    {"threads", processor_count()},
                    {"maskwise", owns() != nullptr}};
        if (request_name == "load") return load(parse_case(request.at("case")));
        if (request_name == "time") return measured_.time(request);
        if (request_name == "compile")
            return compile(parse_case(request.at("case")), request.at("count"));
        if (request_name == "peak_resident") return {{"bytes", peak_resident_bytes()}};
        throw std::invalid_argument("unknown request '" + request_name + "'");
    }

private:
    json load(const bench_case& c) {
        try {
            auto call = std::make_unique<select_call>(engine_, stream_, c);
            const bool maskwise = call->compile();
            json answer = measured_.load(c, std::move(call));
            answer["maskwise"] = maskwise;
            return answer;
        } catch (const dnnl::error& refused) {
            const auto status = " (status " + std::to_string(refused.status) + ')';
            return {{"state", "refused"}, {"reason", refused.message + status}};
        }
    }

    // The graphs have different shapes, so the first compile of each graph is not cached. All
    // graphs are built before the first timed compile. Else timed compiles would also merge the
    // small free blocks that building a graph leaves on the heap.
    json compile(bench_case c, int count) {
        std::vector<std::unique_ptr<select_call>> calls;
        for (int i = 0; i < count; ++i) {
            for (operand* o : {&c.cond, &c.src_0, &c.src_1, &c.dst})
                if (!o->extents.empty() && o->extents[0] > 1) ++o->extents[0];
            calls.push_back(std::make_unique<select_call>(engine_, stream_, c));
        }
        std::vector<double> first, again;
        for (const auto& call : calls) {
            first.push_back(call->time_compile(1));
            again.push_back(call->time_compile(20));
        }
        return {{"first", first}, {"again", again}};
    }

    dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream_{engine_};
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
