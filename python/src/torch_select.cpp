#include "torch_select.hpp"

#include "torch_iterator.hpp"
#include "torch_library.hpp"
#include "torch_scalar.hpp"
#include "torch_threads.hpp"

#include <sys/mman.h>

#include <atomic>
#include <span>
#include <string>
#include <string_view>

namespace maskwise::python {
namespace {

// torch is as fast with fewer elements.
std::atomic<std::int64_t> least_elements{4096};
std::atomic<std::int64_t> selects{0};

// at::native::DispatchStub. Its first member is the kernel that torch chose. PyTorch 2.8 to 2.10
// leave the member null and choose in each call, but call a kernel stored there.
template <class Kernel>
class dispatch_stub {
public:
    // `kernels`: common prefix of torch's kernel symbols; the capability is the suffix.
    dispatch_stub(const char* symbol, const char* kernels) : symbol_(symbol), kernels_(kernels) {}

    // Finds torch's kernel. Returns false if there is none. `capability`: torch's name of the
    // instruction set.
    bool find(std::string_view capability) {
        if (torch_ != nullptr) return true;
        find_symbol(torch_library(), symbol_, place_);
        if (place_ == nullptr) return false;
        before_ = place_->load();
        const Kernel chosen = before_ != nullptr ? before_ : choose(capability);
        if (!is_torchs(chosen)) return false;
        torch_ = chosen;
        return true;
    }
    void replace(Kernel replacement) {
        Kernel expected = before_;
        place_->compare_exchange_strong(expected, replacement);
    }
    void restore(Kernel installed) {
        if (place_ != nullptr) place_->compare_exchange_strong(installed, before_);
    }
    Kernel torch() const { return torch_; }

private:
    // Chooses as torch does: AVX2 if there is no AVX-512 kernel. Null for capabilities of other
    // CPUs.
    Kernel choose(std::string_view capability) const {
        Kernel chosen = nullptr;
        if (capability == "AVX512") chosen = kernel_of("6AVX512E");
        if (chosen == nullptr && capability.starts_with("AVX")) chosen = kernel_of("4AVX2E");
        return capability == "DEFAULT" ? kernel_of("7DEFAULTE") : chosen;
    }
    Kernel kernel_of(const char* end) const {
        Kernel* place = nullptr;
        find_symbol(torch_library(), (std::string(kernels_) + end).c_str(), place);
        return place == nullptr ? nullptr : *place;
    }
    static bool is_torchs(Kernel kernel) {
        Dl_info info;
        return kernel != nullptr && dladdr(reinterpret_cast<void*>(kernel), &info) != 0 &&
               std::string_view(info.dli_fname).find("libtorch_cpu") != std::string_view::npos;
    }

    const char *symbol_, *kernels_;
    std::atomic<Kernel>* place_ = nullptr;
    Kernel before_ = nullptr, torch_ = nullptr;
};

using where_kernel = void (*)(torch_iterator&);
using fill_kernel = void (*)(torch_iterator&, const torch_scalar&);

dispatch_stub<where_kernel> where_stub("_ZN2at6native12where_kernelE",
                                       "_ZN2at6native12DispatchStubIPFvRNS_14TensorIteratorEENS0_"
                                       "34where_kernel_DECLARE_DISPATCH_typeEE");
dispatch_stub<fill_kernel> fill_stub("_ZN2at6native16masked_fill_stubE",
                                     "_ZN2at6native12DispatchStubIPFvRNS_14TensorIteratorERKN3c10"
                                     "6ScalarEENS0_38masked_fill_stub_DECLARE_DISPATCH_typeEE");

struct byte_range {
    const std::byte* first;
    const std::byte* last;
};

byte_range bytes_of(const iterator_operands& operands, std::size_t operand, data_type type) {
    byte_range range{operands.addresses[operand], operands.addresses[operand]};
    for (int dim = 0; dim < operands.extents.rank(); ++dim) {
        const auto reach = (operands.extents[dim] - 1) * operands.strides_bytes[operand][dim];
        (reach < 0 ? range.first : range.last) += reach;
    }
    range.last += width_bytes(type);
    return range;
}

// Whether an operand is exactly the result's memory, or does not overlap that memory. torch accepts
// some other overlaps, with results that depend on the order of torch's loops.
bool is_apart(const iterator_operands& operands, std::size_t operand, data_type type) {
    if (type == operands.type && operands.addresses[operand] == operands.addresses[0] &&
        operands.strides_bytes[operand] == operands.strides_bytes[0])
        return true;
    const byte_range dst = bytes_of(operands, 0, operands.type);
    const byte_range src = bytes_of(operands, operand, type);
    return dst.last <= src.first || src.last <= dst.first;
}

// The first write to new memory maps its pages, which takes longer than the Select. Huge pages are
// mapped faster. NumPy requests huge pages from this size on; torch does not.
constexpr std::ptrdiff_t huge_pages_from_bytes = 4 << 20;
constexpr std::uintptr_t huge_page_bytes = 2 << 20;

bool is_mapped(std::byte* page) {
    unsigned char is_resident = 1;
    return mincore(page, 1, &is_resident) != 0 || (is_resident & 1) != 0;
}

void advise_huge_pages(byte_range dst) {
    if (dst.last - dst.first < huge_pages_from_bytes) return;
    const auto round_down = [](std::uintptr_t address) {
        return address / huge_page_bytes * huge_page_bytes;
    };
    auto* const first = reinterpret_cast<std::byte*>(
        round_down(reinterpret_cast<std::uintptr_t>(dst.first) + huge_page_bytes - 1));
    auto* const last =
        reinterpret_cast<std::byte*>(round_down(reinterpret_cast<std::uintptr_t>(dst.last)));
    if (is_mapped(first) || is_mapped(last - huge_page_bytes)) return;
    madvise(first, static_cast<std::size_t>(last - first), MADV_HUGEPAGE); // a refusal is harmless
}

// Returns false if elements have 8 bytes or more and an operand's innermost dimension is neither
// contiguous nor broadcast, because torch is as fast.
bool gains(const iterator_operands& operands, std::span<const data_type> types) {
    if (width_bytes(operands.type) < 8 || operands.extents.empty()) return true;
    for (std::size_t i = 0; i < types.size(); ++i) {
        const dims& strides = operands.strides_bytes[i];
        const auto innermost = strides[strides.rank() - 1];
        if (innermost != 0 && innermost != static_cast<std::int64_t>(width_bytes(types[i])))
            return false;
    }
    return true;
}

// Returns false, and writes nothing, if Maskwise does not support the layout.
bool select(const select_desc& desc, const select_inputs& inputs, void* dst) {
    std::optional<plan> select;
    try {
        select = compile(dialect::onnx_where_16, desc);
    } catch (const error&) {
        return false;
    }
    if (const auto loop = torch_loop())
        select->execute(inputs, dst, *loop);
    else
        select->execute(inputs, dst);
    selects.fetch_add(1, std::memory_order_relaxed);
    return true;
}

bool run_where(torch_iterator& iterator) {
    const auto operands = read_operands(iterator, 4);
    if (!operands) return false;
    const data_type types[] = {operands->type, data_type::boolean, operands->type, operands->type};
    for (std::size_t i = 1; i < 4; ++i)
        if (!is_apart(*operands, i, types[i])) return false;
    if (!gains(*operands, types)) return false;
    advise_huge_pages(bytes_of(*operands, 0, operands->type));
    return select({.cond = operands->desc(1, types[1]),
                   .src_0 = operands->desc(2, types[2]),
                   .src_1 = operands->desc(3, types[3]),
                   .dst = operands->desc(0, types[0])},
                  {.cond = operands->addresses[1],
                   .src_0 = operands->addresses[2],
                   .src_1 = operands->addresses[3]},
                  operands->addresses[0]);
}

bool run_fill(torch_iterator& iterator, const torch_scalar& number) {
    const auto operands = read_operands(iterator, 2);
    if (!operands || !is_apart(*operands, 1, data_type::boolean)) return false;
    const auto value = element_of(number, operands->type);
    if (!value || !gains(*operands, std::array{operands->type, data_type::boolean})) return false;
    return select(
        {.cond = operands->desc(1, data_type::boolean),
         .src_0 = {operands->type, {}},
         .src_1 = operands->desc(0, operands->type),
         .dst = operands->desc(0, operands->type)},
        {.cond = operands->addresses[1], .src_0 = value->data(), .src_1 = operands->addresses[0]},
        operands->addresses[0]);
}

bool is_large(const torch_iterator& iterator) {
    return element_count(iterator) >= least_elements.load(std::memory_order_relaxed);
}

void where(torch_iterator& iterator) {
    if (!is_large(iterator) || !run_where(iterator)) where_stub.torch()(iterator);
}

void fill(torch_iterator& iterator, const torch_scalar& number) {
    if (!is_large(iterator) || !run_fill(iterator, number)) fill_stub.torch()(iterator, number);
}

} // namespace

bool install_torch_selects(std::string_view capability) {
    if (torch_library() == nullptr || !can_read_iterators() || !where_stub.find(capability) ||
        !fill_stub.find(capability))
        return false;
    where_stub.replace(where);
    fill_stub.replace(fill);
    return true;
}

void uninstall_torch_selects() {
    where_stub.restore(where);
    fill_stub.restore(fill);
}

std::int64_t count_torch_selects() {
    return selects.load();
}

std::int64_t bound_torch_selects(std::int64_t bound) {
    return least_elements.exchange(bound);
}

} // namespace maskwise::python
