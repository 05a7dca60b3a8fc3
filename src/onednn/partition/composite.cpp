// Composites as they are compiled.

#include "onednn/partition/composite.hpp"

#include "base/cache.hpp"
#include "base/error.hpp"
#include "onednn/library/real_library.hpp"
#include "onednn/partition/region_tensors.hpp"
#include "onednn/record/translate.hpp"

#include <algorithm>
#include <span>
#include <string>

namespace maskwise::onednn {
namespace {

// Beyond this, oneDNN runs the partition: its own kernels work in pieces.
constexpr std::size_t max_scratch_bytes = std::size_t{1} << 30;

// Row-major and without gaps: the layout in which rows are run.
abi::logical_tensor dense(abi::logical_tensor tensor) {
    if (tensor.ndims < 1) throw invalid_argument("the rank of the scores is not known");
    const dims shape(std::span(tensor.dims, static_cast<std::size_t>(tensor.ndims)));
    if (*std::ranges::min_element(shape) < 0)
        throw invalid_argument("the shape of the scores is not known");
    tensor.layout_type = abi::layout_strided;
    std::ranges::copy(dense_strides(shape, 1), tensor.layout.strides);
    return tensor;
}

std::size_t bytes_of(const abi::logical_tensor& tensor) {
    if (tensor.layout_type == abi::layout_strided)
        to_desc(from_abi(tensor)); // throws on overflow, which oneDNN does not notice
    std::size_t bytes = 0;
    if (call_real(&real_library::logical_tensor_get_mem_size, &tensor, &bytes) != abi::success)
        throw invalid_argument("the size of tensor " + std::to_string(tensor.id) + " is not known");
    if (bytes > max_scratch_bytes) // SIZE_MAX where oneDNN does not know the size
        throw invalid_argument(std::to_string(bytes) + " bytes of tensor " +
                               std::to_string(tensor.id) + " are too many to keep");
    return padded_bytes(bytes);
}

bool is_among(const std::vector<std::size_t>& ids, std::size_t id) {
    return std::ranges::find(ids, id) != ids.end();
}

tensor_map by_id(const std::vector<abi::logical_tensor>& tensors) {
    tensor_map map;
    for (const auto& tensor : tensors) map.emplace(tensor.id, tensor);
    return map;
}

// The output of that id, as given at add_op.
const abi::logical_tensor& recorded_output(const row_region& region, std::size_t id) {
    for (const auto& op : region.records)
        if (const auto* output = find_by_id(op->outputs, id)) return *output;
    throw invalid_argument("tensor " + std::to_string(id) + " is not made in the partition");
}

// The client's list, where entries keep their places but have an id only if the region reads them:
// the client has no say in a value that the region makes. Entries behind the last of these are left
// out; they need not be there at execution.
std::vector<abi::logical_tensor> only_read(const row_region& region,
                                           std::vector<abi::logical_tensor> given) {
    constexpr std::size_t no_tensor = scratchpad_id - 1; // an id that none has
    for (auto& tensor : given)
        if (graph::makes(region.ops, tensor.id) || !graph::reads(region.ops, tensor.id))
            tensor.id = no_tensor;
    while (!given.empty() && given.back().id == no_tensor) given.pop_back();
    return given;
}

// oneDNN takes host scalars inside larger partitions only; on a part with one it throws.
void refuse_host_scalars(const op_list& part, const tensor_map& given) {
    const auto is_host_scalar = [&](const abi::logical_tensor& input) {
        const auto now = given.find(input.id);
        return input.property == abi::property_host_scalar ||
               (now != given.end() && now->second.property == abi::property_host_scalar);
    };
    for (const auto& op : part)
        if (std::ranges::any_of(op->inputs, is_host_scalar))
            throw invalid_argument("operator " + std::to_string(op->id) +
                                   " of a part takes a host scalar");
}

} // namespace

composite::composite(const row_region& region, const compile_call& call)
    : executable(call), read_inputs_(only_read(region, inputs_)), output_ids_(region.output_ids),
      settings_(region.settings), engine_(call.engine) {
    if (region.block) chain_ = region.block->rows;
    require_outputs(region, outputs_);
    for (std::size_t i = 0; i < outputs_.size(); ++i)
        if (makes(outputs_[i].id)) needed_outputs_ = i + 1;
    require_types(region, read_inputs_);
    require_types(region, outputs_);
    if (chain_)
        compile_parts(region);
    else
        compile_after(region.records);
    place_scratchpad();
    if (scratch_bytes_ > max_scratch_bytes)
        throw invalid_argument(std::to_string(scratch_bytes_) + " bytes of scratch are too many");
    inplace_ = find_inplace();
}

// Each part decides on the layouts that it writes, so the parts are compiled in the order in which
// they run. The chain reads scores and writes a result of their shape, both dense unless the client
// describes them: the part before is asked for such scores, the part after told of such a result.
void composite::compile_parts(const row_region& region) {
    const auto parts = graph::divide(region.ops, chain_->op_ids, chain_->scores);
    compile_before(region, parts);
    result_ = dense(scores_);
    result_.id = chain_->result;
    result_.data_type = recorded_output(region, chain_->result).data_type;
    if (chain_->statistics) place_statistics();
    if (parts.after.empty()) {
        bind_result();
    } else {
        place_result_in_scratch();
        compile_after(records_of(region.records, parts.after));
    }
    plan_rows();
}

void composite::compile_before(const row_region& region, const graph::division& parts) {
    const auto before = records_of(region.records, parts.before);
    const auto given = by_id(read_inputs_);
    if (const auto* scores = find_by_id(read_inputs_, chain_->scores)) {
        scores_ = *scores;
        return refuse_host_scalars(before, given);
    }
    scores_ = dense(recorded_output(region, chain_->scores));
    refuse_host_scalars(before, given);
    tensor_map wanted{{scores_.id, scores_}};
    for (const std::size_t id : graph::handed_over(parts)) {
        auto tensor = recorded_output(region, id);
        tensor.layout_type = abi::layout_any;
        wanted.emplace(id, tensor);
    }
    before_ = std::make_unique<onednn_subgraph>(before, settings_, given, wanted, engine_);
    for (const auto& [id, tensor] : before_->intermediates()) place_in_scratch(id, tensor);
    for (const auto& [id, tensor] : before_->outputs()) place_in_scratch(id, tensor);
}

// One number a row, for the client or for the part after.
void composite::place_statistics() {
    statistics_ = scores_;
    statistics_->id = chain_->statistics->id;
    statistics_->data_type = abi::type_f32;
    statistics_->dims[scores_.ndims - 1] = 1;
    statistics_ = dense(*statistics_);
    if (!bind_to_output(*statistics_)) place_in_scratch(statistics_->id, *statistics_);
}

// Rows are run in place where their type does not change.
void composite::place_result_in_scratch() {
    if (result_.data_type != scores_.data_type) return place_in_scratch(result_.id, result_);
    const std::size_t offset_bytes = inner_values_.at(scores_.id).offset_bytes;
    inner_values_.emplace(result_.id, inner_value{result_, offset_bytes});
}

// With no part after the chain, nothing but its results may leave.
void composite::bind_result() {
    if (!bind_to_output(result_)) throw invalid_argument("the chain's result is not asked for");
    for (const std::size_t id : output_ids_)
        if (id != result_.id && (!statistics_ || id != statistics_->id))
            throw invalid_argument("output " + std::to_string(id) + " is made before the chain");
}

// Outputs are laid out as this part lays them out.
void composite::compile_after(const op_list& after) {
    auto given = by_id(read_inputs_), wanted = by_id(outputs_);
    std::erase_if(wanted, [this](const auto& entry) {
        return !makes(entry.first) || (statistics_ && entry.first == statistics_->id);
    });
    refuse_host_scalars(after, given);
    if (chain_) given.emplace(result_.id, result_);
    if (before_) given.insert(before_->outputs().begin(), before_->outputs().end());
    if (statistics_) given.emplace(statistics_->id, *statistics_);
    after_ = std::make_unique<onednn_subgraph>(after, settings_, given, wanted, engine_);
    for (auto& output : outputs_)
        if (const auto made = after_->outputs().find(output.id); made != after_->outputs().end())
            output = made->second;
    for (const auto& [id, tensor] : after_->intermediates()) place_in_scratch(id, tensor);
}

// Where the client asks for the value, it lies as the client says, or, if that is `any`, as it
// would lie anyway.
bool composite::bind_to_output(abi::logical_tensor& value) {
    const auto output = std::ranges::find(outputs_, value.id, &abi::logical_tensor::id);
    if (output == outputs_.end()) return false;
    value.property = output->property;
    if (output->layout_type == abi::layout_any) *output = value;
    value = *output;
    return true;
}

void composite::place_in_scratch(std::size_t id, const abi::logical_tensor& tensor) {
    inner_values_.emplace(id, inner_value{tensor, scratch_bytes_});
    scratch_bytes_ += bytes_of(tensor);
}

// One for both parts, which never run at the same time. Left to the library, it would be allocated
// in every execution, and above 128 KiB every page of it touched for the first time.
void composite::place_scratchpad() {
    const std::size_t bytes =
        std::max(before_ ? before_->scratch_bytes() : 0, after_ ? after_->scratch_bytes() : 0);
    if (bytes > 0) place_in_scratch(scratchpad_id, scratchpad_of(bytes));
}

void composite::plan_rows() {
    row_desc desc;
    desc.scores = to_desc(from_abi(scores_));
    desc.result = to_desc(from_abi(result_));
    for (const auto& operand : chain_->operands)
        desc.operands.push_back(describe_input(read_inputs_, operand.id));
    for (const auto& term : chain_->boundary)
        fusion::require_boundary_term(describe_input(read_inputs_, term.tensor.id));
    desc.steps = chain_->steps;
    desc.soft_max = chain_->soft_max;
    desc.quantize = chain_->quantize;
    if (statistics_) desc.statistics = to_desc(from_abi(*statistics_));
    rows_ = make_row_plan(desc, active_isa(), stream_threshold_bytes());
}

bool composite::makes(std::size_t id) const {
    return is_among(output_ids_, id);
}

std::string composite::describe() const {
    if (!chain_) return "oneDNN operator by operator";
    std::string text = to_string(rows_) + ": operators";
    for (const std::size_t id : chain_->op_ids) text.append(" ").append(std::to_string(id));
    return text;
}

// Where the rows are all there is: the scores may be overwritten by a result of their layout.
std::optional<abi::inplace_pair> composite::find_inplace() const {
    if (!chain_ || before_ || after_) return std::nullopt;
    const bool is_operand = std::ranges::any_of(
        chain_->operands, [this](const auto& operand) { return operand.id == chain_->scores; });
    if (is_operand || scores_.property == abi::property_constant ||
        scores_.data_type != result_.data_type ||
        !graph::lie_alike(from_abi(scores_), from_abi(result_)))
        return std::nullopt;
    return abi::inplace_pair{scores_.id, result_.id};
}

} // namespace maskwise::onednn
