#include "onednn/library/find_onednn.hpp"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <span>

namespace maskwise::onednn {
namespace {

// What a loaded object tells of the symbols that it defines.
struct dynamic_symbols {
    const ElfW(Sym) * symbols = nullptr;
    const char* names = nullptr;
    const std::uint32_t* table = nullptr; // DT_GNU_HASH: four numbers, filter, buckets, chains
};

// The loader has made addresses of most entries; those of the kernel's object are still offsets.
const void* address_of(const dl_phdr_info& object, ElfW(Addr) value) {
    return reinterpret_cast<const void*>(value < object.dlpi_addr ? object.dlpi_addr + value
                                                                  : value);
}

dynamic_symbols symbols_of(const dl_phdr_info& object) {
    dynamic_symbols found;
    const ElfW(Dyn)* entry = nullptr;
    for (const ElfW(Phdr) & header : std::span(object.dlpi_phdr, object.dlpi_phnum))
        if (header.p_type == PT_DYNAMIC)
            entry = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + header.p_vaddr);
    for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
        const void* const at = address_of(object, entry->d_un.d_ptr);
        if (entry->d_tag == DT_SYMTAB) found.symbols = static_cast<const ElfW(Sym)*>(at);
        if (entry->d_tag == DT_STRTAB) found.names = static_cast<const char*>(at);
        if (entry->d_tag == DT_GNU_HASH) found.table = static_cast<const std::uint32_t*>(at);
    }
    return found;
}

std::uint32_t hash_of(const char* name) {
    std::uint32_t hash = 5381;
    for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
    return hash;
}

bool defines(const dl_phdr_info& object, const char* name) {
    const dynamic_symbols in = symbols_of(object);
    if (in.symbols == nullptr || in.names == nullptr || in.table == nullptr) return false;
    const std::uint32_t bucket_count = in.table[0], first = in.table[1], hash = hash_of(name);
    if (bucket_count == 0) return false;
    const std::uint32_t* const buckets =
        in.table + 4 + in.table[2] * (sizeof(ElfW(Addr)) / sizeof(std::uint32_t));
    const std::uint32_t* const chains = buckets + bucket_count;
    std::uint32_t i = buckets[hash % bucket_count];
    if (i < first) return false;
    for (;; ++i) {
        const std::uint32_t own = chains[i - first]; // its lowest bit ends the chain
        const ElfW(Sym)& symbol = in.symbols[i];
        if ((own | 1U) == (hash | 1U) && std::strcmp(in.names + symbol.st_name, name) == 0)
            return true;
        if ((own & 1U) != 0) return false;
    }
}

struct search {
    ElfW(Addr) own_base;
    const char* file = nullptr;
};

// The loader is locked meanwhile: nothing here may lock it again or allocate.
int take_definer(dl_phdr_info* object, std::size_t, void* to) {
    search& wanted = *static_cast<search*>(to);
    if (object->dlpi_name == nullptr || object->dlpi_name[0] == '\0') return 0;
    if (object->dlpi_addr == wanted.own_base || !defines(*object, probe_name)) return 0;
    wanted.file = object->dlpi_name;
    return 1;
}

} // namespace

void* first_by_soname(void* (*function)(const char* soname)) {
    if (void* found = function("libdnnl.so.3")) return found;
    constexpr int newest_minor = 30;
    for (int minor = newest_minor; minor > 0; --minor) {
        char name[32];
        std::snprintf(name, sizeof name, "libdnnl.so.3.%d", minor);
        if (void* found = function(name)) return found;
    }
    return function("libdnnl.so");
}

const char* find_loaded_onednn() noexcept {
    Dl_info own{};
    dladdr(reinterpret_cast<const void*>(&hash_of), &own);
    search wanted{reinterpret_cast<ElfW(Addr)>(own.dli_fbase)};
    dl_iterate_phdr(take_definer, &wanted);
    return wanted.file;
}

const char* file_of(const void* address) noexcept {
    Dl_info info{};
    return dladdr(address, &info) != 0 ? info.dli_fname : nullptr;
}

std::string to_string(const abi::version& version) {
    return std::to_string(version.major) + '.' + std::to_string(version.minor) + '.' +
           std::to_string(version.patch);
}

} // namespace maskwise::onednn
