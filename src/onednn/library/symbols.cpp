#include "onednn/library/symbols.hpp"

#include <cstdint>
#include <dlfcn.h>
#include <span>

namespace maskwise::onednn {
namespace {

struct symbol_tables {
    const ElfW(Sym) * symbols = nullptr;
    const char* names = nullptr;
    const std::uint32_t* hashes = nullptr; // DT_GNU_HASH: four numbers, filter, buckets, chains
};

// The loader has already added the base to the addresses in an object's dynamic section, except in
// the kernel's object (vDSO).
const void* address_of(ElfW(Addr) base, ElfW(Addr) value) {
    return reinterpret_cast<const void*>(value < base ? base + value : value);
}

symbol_tables tables_of(ElfW(Addr) base, const ElfW(Dyn) * entry) {
    symbol_tables tables;
    for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
        const void* const address = address_of(base, entry->d_un.d_ptr);
        if (entry->d_tag == DT_SYMTAB) tables.symbols = static_cast<const ElfW(Sym)*>(address);
        if (entry->d_tag == DT_STRTAB) tables.names = static_cast<const char*>(address);
        if (entry->d_tag == DT_GNU_HASH) tables.hashes = static_cast<const std::uint32_t*>(address);
    }
    return tables;
}

std::uint32_t hash_of(const char* name) {
    std::uint32_t hash = 5381;
    for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
    return hash;
}

const ElfW(Sym) * entry_of(const symbol_tables& tables, const char* name) {
    if (tables.symbols == nullptr || tables.names == nullptr || tables.hashes == nullptr)
        return nullptr;
    const std::uint32_t bucket_count = tables.hashes[0], first = tables.hashes[1];
    if (bucket_count == 0) return nullptr;
    const std::uint32_t* const buckets =
        tables.hashes + 4 + tables.hashes[2] * (sizeof(ElfW(Addr)) / sizeof(std::uint32_t));
    const std::uint32_t* const chains = buckets + bucket_count;
    const std::uint32_t hash = hash_of(name);
    std::uint32_t i = buckets[hash % bucket_count];
    if (i < first) return nullptr;
    for (;; ++i) {
        const std::uint32_t entry = chains[i - first]; // the last entry of a chain is odd
        const ElfW(Sym)& symbol = tables.symbols[i];
        if ((entry | 1U) == (hash | 1U) && is_same(tables.names + symbol.st_name, name))
            return &symbol;
        if ((entry & 1U) != 0) return nullptr;
    }
}

void* symbol_in(ElfW(Addr) base, const ElfW(Dyn) * dynamic, const char* name) {
    const ElfW(Sym)* const symbol = entry_of(tables_of(base, dynamic), name);
    return symbol == nullptr ? nullptr : reinterpret_cast<void*>(base + symbol->st_value);
}

const link_map* object_of(const void* address) {
    Dl_info info{};
    void* object = nullptr;
    return dladdr1(address, &info, &object, RTLD_DL_LINKMAP) != 0
               ? static_cast<const link_map*>(object)
               : nullptr;
}

bool is_of_file(const char* path, const char* file) {
    const char* last = path;
    for (; *path != '\0'; ++path)
        if (*path == '/') last = path + 1;
    return is_same(last, file);
}

} // namespace

bool is_same(const char* text, const char* other) noexcept {
    for (; *text == *other; ++text, ++other)
        if (*text == '\0') return true;
    return false;
}

void* symbol_in(const dl_phdr_info& object, const char* name) noexcept {
    for (const ElfW(Phdr) & header : std::span(object.dlpi_phdr, object.dlpi_phnum)) {
        if (header.p_type != PT_DYNAMIC) continue;
        const ElfW(Addr) dynamic = object.dlpi_addr + header.p_vaddr;
        return symbol_in(object.dlpi_addr, reinterpret_cast<const ElfW(Dyn)*>(dynamic), name);
    }
    return nullptr;
}

void* symbol_beside(const void* address, const char* name) noexcept {
    const link_map* const object = object_of(address);
    return object == nullptr ? nullptr : symbol_in(object->l_addr, object->l_ld, name);
}

void* symbol_of_file(const char* file, const char* name) noexcept {
    const link_map* object = object_of(reinterpret_cast<const void*>(&symbol_beside));
    while (object != nullptr && object->l_prev != nullptr) object = object->l_prev;
    while (object != nullptr && !is_of_file(object->l_name, file)) object = object->l_next;
    return object == nullptr ? nullptr : symbol_in(object->l_addr, object->l_ld, name);
}

} // namespace maskwise::onednn
