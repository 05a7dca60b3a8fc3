#include "chain_run.hpp"

#include "chain_memory.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <exception>

namespace maskwise::fuzz {
namespace {

constexpr std::size_t further = 7778; // ids from here on belong to no graph
constexpr std::size_t guard_bytes = 64;
constexpr std::byte guard{0x5A};

// Draws an absolute value in [largest / 4, largest] and a sign, so that quotients are bounded, too.
float draw_number(generator& random, double largest) {
    const auto part = static_cast<double>(test::draw(random, 256, 1024)) / 1024;
    return static_cast<float>((test::one_in(random, 2) ? part : -part) * largest);
}

std::vector<logical_tensor> ports(const session& side, dnnl_graph_partition_t partition,
                                  bool are_inputs) {
    const auto& calls = side.calls;
    std::size_t count = 0;
    (are_inputs ? calls.partition_get_input_ports_num
                : calls.partition_get_output_ports_num)(partition, &count);
    std::vector<logical_tensor> list(count);
    if (count > 0)
        (are_inputs ? calls.partition_get_input_ports
                    : calls.partition_get_output_ports)(partition, count, list.data());
    return list;
}

bool multiplies_matrices(const chain_description& chain, const std::vector<std::size_t>& ids) {
    return std::any_of(chain.graph.ops.begin(), chain.graph.ops.end(), [&](const auto& op) {
        return op.kind == dnnl_graph_op_matmul &&
               std::find(ids.begin(), ids.end(), op.id) != ids.end();
    });
}

class partition_run {
public:
    partition_run(const session& side, std::size_t number, const chain_description& chain,
                  chain_result& result)
        : calls_(side.calls), partition_(side.partitions[number]), chain_(chain), result_(result),
          inputs_(ports(side, partition_, true)), outputs_(ports(side, partition_, false)) {}

    ~partition_run() {
        for (auto* tensor : tensors_) calls_.tensor_destroy(tensor);
        calls_.compiled_partition_destroy(compiled_);
    }
    partition_run(const partition_run&) = delete;
    partition_run& operator=(const partition_run&) = delete;

    void run() {
        if (!describe_ports() || !compile() || !allocate_outputs()) return;
        execute({});
        if (!result_.refusal.empty() || !result_.fault.empty()) return;
        for (const auto& output : outputs_)
            if (output.id < further) result_.written.insert(output.id);
        if (!is_owned()) return;
        for (const auto& output : outputs_) result_.owned.insert(output.id);
        run_in_place();
    }

    bool is_owned() const { return test::maskwise_owns(compiled_); }

private:
    bool refuse(const std::string& call, int status) {
        if (status != dnnl_success) result_.refusal = call + " returns " + std::to_string(status);
        return status == dnnl_success;
    }

    bool describe_ports() {
        for (auto& input : inputs_) {
            const auto known = result_.tensors.find(input.id);
            if (known == result_.tensors.end()) {
                result_.fault = "a partition comes before its inputs' partitions";
                return false;
            }
            input = known->second;
        }
        for (auto& output : outputs_) {
            output = chain_.now.at(output.id);
            if (chain_.open.contains(output.id)) output.layout_type = dnnl_graph_layout_type_any;
        }
        has_further_input_ =
            chain_.further_input != 0 &&
            std::none_of(inputs_.begin(), inputs_.end(),
                         [this](const auto& input) { return input.id == chain_.further_input; });
        if (has_further_input_)
            inputs_.insert(inputs_.begin(), test::dense(chain_.further_input, dnnl_f32, {3}));
        if (chain_.has_further_output) outputs_.push_back(test::dense(further, dnnl_f32, {3}));
        if (chain_.lists_are_reversed) std::reverse(inputs_.begin(), inputs_.end());
        return true;
    }

    bool compile() {
        calls_.compiled_partition_create(&compiled_, partition_);
        std::vector<const logical_tensor*> in, out;
        for (const auto& tensor : inputs_) in.push_back(&tensor);
        for (const auto& tensor : outputs_) out.push_back(&tensor);
        return refuse("compile",
                      calls_.partition_compile(partition_, compiled_, in.size(), in.data(),
                                               out.size(), out.data(), test::cpu_engine()));
    }

    // Outputs get the library's layouts, and separate memory with guard bytes at the end.
    bool allocate_outputs() {
        for (auto& output : outputs_) {
            if (output.id >= further) continue;
            logical_tensor answer{};
            if (!refuse("query", calls_.compiled_partition_query_logical_tensor(
                                     compiled_, output.id, &answer)))
                return false;
            if (answer.data_type != output.data_type) {
                result_.fault = "output " + std::to_string(output.id) +
                                " has a type other than the requested type";
                return false;
            }
            output = answer;
            if (answer.layout_type != dnnl_graph_layout_type_strided) {
                result_.refusal = "an opaque layout";
                return false;
            }
            result_.tensors[answer.id] = answer;
            result_.bytes[answer.id].assign(test::size_of(answer) + guard_bytes, guard);
        }
        return true;
    }

    dnnl_graph_tensor_t create_tensor(const logical_tensor& tensor, std::byte* bytes) {
        dnnl_graph_tensor_t handle = nullptr;
        if (tensor.property == host_scalar)
            calls_.tensor_create_scalar(&handle, &tensor, bytes);
        else
            calls_.tensor_create(&handle, &tensor, test::cpu_engine(), bytes);
        tensors_.push_back(handle);
        return handle;
    }

    // `memory` replaces the memory of the tensors with these ids.
    void execute(const std::map<std::size_t, std::byte*>& memory) {
        const auto bytes_of = [&](const logical_tensor& tensor) {
            if (tensor.id >= further) return spare_.data();
            const auto other = memory.find(tensor.id);
            return other != memory.end() ? other->second : result_.bytes.at(tensor.id).data();
        };
        std::vector<const_dnnl_graph_tensor_t> in, out;
        for (const auto& tensor : inputs_) {
            const bool is_further = has_further_input_ && tensor.id == chain_.further_input;
            in.push_back(create_tensor(tensor, is_further ? spare_.data() : bytes_of(tensor)));
        }
        for (const auto& tensor : outputs_) out.push_back(create_tensor(tensor, bytes_of(tensor)));
        const int status = calls_.compiled_partition_execute(
            compiled_, test::cpu_stream(), in.size(), in.data(), out.size(), out.data());
        dnnl_stream_wait(test::cpu_stream());
        if (!refuse("execute", status)) return;
        for (const auto& tensor : outputs_)
            if (tensor.id < further) check_output(tensor);
    }

    // Sets a fault if guard bytes were written, and a refusal if oneDNN leaves a boolean result
    // unwritten.
    void check_output(const logical_tensor& tensor) {
        const auto& bytes = result_.bytes.at(tensor.id);
        if (!is_guarded(bytes))
            result_.fault = "written past the end of tensor " + std::to_string(tensor.id);
        if (tensor.data_type == dnnl_boolean && bytes[0] == guard)
            result_.refusal = "leaves tensor " + std::to_string(tensor.id) + " unwritten";
    }

    static bool is_guarded(const std::vector<std::byte>& bytes) {
        return std::all_of(bytes.end() - guard_bytes, bytes.end(),
                           [](std::byte each) { return each == guard; });
    }

    // Executes each in-place pair that Maskwise offers. The result must not change. Not used for
    // oneDNN's partitions, because some of oneDNN's reorders write nothing.
    void run_in_place() {
        std::size_t count = 0;
        const dnnl_graph_inplace_pair_t* pairs = nullptr;
        calls_.compiled_partition_get_inplace_ports(compiled_, &count, &pairs);
        const std::vector<dnnl_graph_inplace_pair_t> offered(pairs, pairs + count);
        for (const auto& [input, output] : offered) {
            if (result_.tensors.at(input).property == dnnl_graph_tensor_property_constant) {
                result_.fault =
                    "offers the constant " + std::to_string(input) + " to be overwritten";
                return;
            }
            auto shared = result_.bytes.at(input);
            const auto& separate = result_.bytes.at(output);
            if (shared.size() < separate.size()) {
                result_.fault = "offers an input that is too small to be overwritten";
                return;
            }
            execute({{input, shared.data()}, {output, shared.data()}});
            const auto& tensor = result_.tensors.at(output);
            const auto wrong = difference({tensor, shared}, {tensor, separate}, 0);
            if (!wrong.empty()) result_.fault = "in place, " + wrong;
        }
    }

    const api& calls_;
    dnnl_graph_partition_t partition_;
    const chain_description& chain_;
    chain_result& result_;
    std::vector<logical_tensor> inputs_, outputs_;
    dnnl_graph_compiled_partition_t compiled_ = nullptr;
    std::vector<dnnl_graph_tensor_t> tensors_;
    bool has_further_input_ = false;
    std::vector<std::byte> spare_ = std::vector<std::byte>(guard_bytes);
};

// Returns the id of the input that gets NaNs; 0 (mostly): none.
std::size_t draw_input_with_nans(generator& later, const chain_description& chain) {
    if (!test::one_in(later, 6)) return 0;
    auto which = test::draw(later, 0, std::ssize(chain.largest) - 1);
    return std::next(chain.largest.begin(), which)->first;
}

} // namespace

tensor_bytes draw_inputs(generator& random, generator& later, const chain_description& chain) {
    tensor_bytes drawn;
    const std::size_t with_nans = draw_input_with_nans(later, chain);
    for (const auto& [id, largest] : chain.largest) {
        const auto& tensor = chain.now.at(id);
        auto& bytes = drawn[id];
        bytes.resize(test::size_of(tensor) + guard_bytes);
        const auto fill = chain.fills.find(id);
        const auto width = static_cast<std::size_t>(test::width_bytes(tensor));
        if (width == 1) test::fill_mask(random, bytes.data(), bytes.size());
        for (std::size_t offset = 0; width > 1 && offset < bytes.size(); offset += width) {
            const float number =
                fill != chain.fills.end() ? fill->second : draw_number(random, largest);
            const bool is_nan = id == with_nans && test::one_in(later, 16);
            store(&bytes[offset], tensor.data_type, is_nan ? NAN : number);
        }
    }
    return drawn;
}

bool planted(const char* fault) {
    const char* name = std::getenv("MASKWISE_FUZZ_FAULT");
    return name != nullptr && std::string(name) == fault;
}

namespace {

// Returns whether Maskwise owns the partition.
bool run_partition(const session& side, std::size_t number, const chain_description& chain,
                   chain_result& result) {
    try {
        partition_run each(side, number, chain, result);
        each.run();
        return each.is_owned();
    } catch (const std::exception& thrown) {
        result.refusal = std::string("throws ") + thrown.what();
        return false;
    }
}

bool have_equal_descriptions(const logical_tensor& a, const logical_tensor& b) {
    return a.ndims == b.ndims && a.data_type == b.data_type && a.property == b.property &&
           a.layout_type == b.layout_type && std::equal(a.dims, a.dims + a.ndims, b.dims) &&
           std::equal(a.layout.strides, a.layout.strides + a.ndims, b.layout.strides);
}

// Whether the tensor has no gaps. Dimensions may have any order, as in layouts that oneDNN chooses.
bool is_dense(const logical_tensor& tensor) {
    std::int64_t count = 1;
    for (int i = 0; i < tensor.ndims; ++i) count *= tensor.dims[i];
    return tensor.layout_type == dnnl_graph_layout_type_strided &&
           static_cast<std::int64_t>(test::size_of(tensor)) == count * test::width_bytes(tensor);
}

} // namespace

chain_result run_chain(const session& side, const chain_description& chain,
                       const tensor_bytes& inputs) {
    chain_result result;
    result.bytes = inputs;
    for (const auto& [id, bytes] : inputs) result.tensors[id] = chain.now.at(id);
    for (std::size_t i = 0; i < side.partitions.size(); ++i) {
        const auto& ops = side.notes[i].ops;
        const bool is_owned = run_partition(side, i, chain, result);
        if (ops.size() > 1 && is_owned)
            ++(multiplies_matrices(chain, ops) ? result.composites : result.merged);
        if (!result.refusal.empty() || !result.fault.empty()) break;
    }
    return result;
}

chain_result repeat_partition(const session& side, const chain_description& chain,
                              const chain_result& plugin_result, const chain_result& other,
                              std::size_t id) {
    chain_result result = plugin_result;
    for (std::size_t i = 0; i < side.partitions.size(); ++i) {
        const auto outputs = ports(side, side.partitions[i], false);
        if (std::none_of(outputs.begin(), outputs.end(),
                         [=](const auto& each) { return each.id == id; }))
            continue;
        for (const auto& input : ports(side, side.partitions[i], true))
            if (!plugin_result.tensors.contains(input.id) ||
                (!is_dense(plugin_result.tensors.at(input.id)) &&
                 !have_equal_descriptions(plugin_result.tensors.at(input.id),
                                          other.tensors.at(input.id))))
                result.refusal = "inputs with layouts of the plugin";
        if (result.refusal.empty()) run_partition(side, i, chain, result);
    }
    return result;
}

std::string difference(const laid_out& a, const laid_out& b, double tolerance) {
    std::vector<std::int64_t> index(static_cast<std::size_t>(a.tensor.ndims));
    do {
        const double left = load(a, index), right = load(b, index);
        const bool are_near = std::fabs(left - right) <= tolerance || left == right;
        if (!are_near && !(std::isnan(left) && std::isnan(right)))
            return "tensor " + std::to_string(a.tensor.id) + " has " + std::to_string(left) +
                   ", not " + std::to_string(right) + " within " + std::to_string(tolerance);
    } while (step(index, a.tensor));
    return {};
}

} // namespace maskwise::fuzz
