#include "layout.hpp"

#include <openvino/core/core.hpp>
#include <openvino/core/op_extension.hpp>
#include <openvino/op/op.hpp>
#include <openvino/op/util/multi_subgraph_base.hpp>

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <typeinfo>

namespace maskwise::openvino {
namespace {

constexpr std::size_t word = sizeof(void*);
constexpr std::size_t words_before_slots = 2; // of a vtable: the offset to top and the type_info

// Returns the number of slots of the class's vtable: the index of the slot that an additional
// virtual function gets. The first word of a pointer to that function is the slot's offset in
// bytes, plus 1 on x86-64.
template <class Class>
std::size_t slots_compiled() {
    struct longer : Class {
        virtual void after_the_last();
    };
    const auto pointer = &longer::after_the_last;
    std::size_t words[2];
    static_assert(sizeof(pointer) == sizeof(words));
    std::memcpy(words, &pointer, sizeof(words));
    return words[0] / word;
}

std::size_t slots_loaded(const char* mangled) {
    void* const vtable = dlsym(RTLD_DEFAULT, (std::string("_ZTV") + mangled).c_str());
    Dl_info library;
    void* entry = nullptr;
    if (vtable == nullptr || dladdr1(vtable, &library, &entry, RTLD_DL_SYMENT) == 0) return 0;
    return static_cast<const ElfW(Sym)*>(entry)->st_size / word - words_before_slots;
}

template <class Class>
bool has_expected_slots() {
    return slots_compiled<Class>() == slots_loaded(typeid(Class).name());
}

class plain : public ov::op::Op {
public:
    OPENVINO_OP("Plain", "maskwise")
    std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector&) const override {
        return {};
    }
};

// `plain` adds no member to ov::Node. OpenVINO's constructor must write the object's last word and
// nothing past it.
bool has_expected_size() {
    constexpr std::size_t size = sizeof(plain), margin = 1024;
    constexpr std::byte untouched{0xA5};
    const auto is_untouched = [](std::byte value) { return value == untouched; };
    alignas(plain) std::array<std::byte, size + margin> memory;
    memory.fill(untouched);
    auto* const node = new (memory.data()) plain();
    const auto end = memory.begin() + size;
    const bool result = !std::all_of(end - static_cast<std::ptrdiff_t>(word), end, is_untouched) &&
                        std::all_of(end, memory.end(), is_untouched);
    node->~plain();
    return result;
}

} // namespace

void check_layout() {
    const bool is_known = has_expected_slots<ov::Node>() &&
                          has_expected_slots<ov::op::util::MultiSubGraphOp>() &&
                          has_expected_slots<ov::AttributeVisitor>() &&
                          has_expected_slots<ov::BaseOpExtension>() && has_expected_size();
    if (is_known) return;
    const auto version = [](auto... numbers) {
        std::string text;
        ((text += (text.empty() ? "" : ".") + std::to_string(numbers)), ...);
        return text;
    };
    throw std::runtime_error(
        std::string("Maskwise: does not run in OpenVINO ") +
        ov::get_openvino_version().buildNumber + ", whose classes differ in layout from those of " +
        version(OPENVINO_VERSION_MAJOR, OPENVINO_VERSION_MINOR, OPENVINO_VERSION_PATCH));
}

} // namespace maskwise::openvino
