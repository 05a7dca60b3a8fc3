#include "onednn/library/symbols.hpp"

#include <cstdint>
#include <cstring>
#include <span>

namespace maskwise::onednn {
namespace {

struct symbol_tables {
    const ElfW(Sym) * symbols = nullptr;
    const char* names = nullptr;
    const std::uint32_t* hashes = nullptr; // DT_GNU_HASH: four numbers, filter, buckets, chains
};

// The loader has relocated most entries; those of the kernel's object are still offsets.
const void* address_of(const dl_phdr_info& object, ElfW(Addr) value) {
    return reinterpret_cast<const void*>(value < object.dlpi_addr ? object.dlpi_addr + value
                                                                  : value);
}

symbol_tables tables_of(const dl_phdr_info& object) {
    symbol_tables tables;
    const ElfW(Dyn)* entry = nullptr;
    for (const ElfW(Phdr) & header : std::span(object.dlpi_phdr, object.dlpi_phnum))
        if (header.p_type == PT_DYNAMIC)
            entry = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + header.p_vaddr);
    for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
        const void* const address = address_of(object, entry->d_un.d_ptr);
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
        const std::uint32_t entry = chains[i - first]; // its lowest bit ends the chain
        const ElfW(Sym)& symbol = tables.symbols[i];
        if ((entry | 1U) == (hash | 1U) && std::strcmp(tables.names + symbol.st_name, name) == 0)
            return &symbol;
        if ((entry & 1U) != 0) return nullptr;
    }
}

bool is_of_file(const dl_phdr_info& object, const char* file) {
    if (object.dlpi_name == nullptr) return false;
    const char* const slash = std::strrchr(object.dlpi_name, '/');
    return std::strcmp(slash != nullptr ? slash + 1 : object.dlpi_name, file) == 0;
}

} // namespace

void* symbol_in(const dl_phdr_info& object, const char* name) noexcept {
    const ElfW(Sym)* const symbol = entry_of(tables_of(object), name);
    if (symbol == nullptr) return nullptr;
    return reinterpret_cast<void*>(object.dlpi_addr + symbol->st_value);
}

void* symbol_at(const void* base, const char* name) noexcept {
    void* address = nullptr;
    visit_loaded([&](const dl_phdr_info& object) {
        if (reinterpret_cast<const void*>(object.dlpi_addr) != base) return false;
        address = symbol_in(object, name);
        return true;
    });
    return address;
}

void* symbol_of_file(const char* file, const char* name) noexcept {
    void* address = nullptr;
    visit_loaded([&](const dl_phdr_info& object) {
        if (!is_of_file(object, file)) return false;
        address = symbol_in(object, name);
        return true;
    });
    return address;
}

} // namespace maskwise::onednn
