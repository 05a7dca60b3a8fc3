#include "trapped_tiles.hpp"

#if defined(__x86_64__)

#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>

namespace maskwise::test {
namespace {

struct tile {
    std::size_t rows, row_bytes;
    std::uint8_t bytes[16][64];
};

tile tiles[8];
bool configured;
std::int64_t product_count;
struct sigaction before;

[[noreturn]] void refuse(const char* message) {
    std::fprintf(stderr, "tiles: %s\n", message);
    std::abort();
}

// The fields of an instruction with a three-byte VEX prefix. A memory operand is an address and a
// stride between rows.
struct instruction {
    unsigned opcode, prefix, reg, rm, third;
    bool has_memory, has_index;
    std::uint8_t* address;
    std::int64_t stride;
    std::size_t bytes;
};

std::int64_t value_of(const ucontext_t& context, unsigned number) {
    constexpr int names[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                             REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                             REG_R12, REG_R13, REG_R14, REG_R15};
    return context.uc_mcontext.gregs[names[number]];
}

template <class T>
std::int64_t signed_at(const std::uint8_t* bytes) {
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
}

void decode_memory(const std::uint8_t* code, const ucontext_t& context, instruction& result) {
    const unsigned mode = code[4] >> 6, high_base = code[1] & 0x20 ? 0 : 8;
    const bool has_sib = (code[4] & 7) == 4;
    std::int64_t address = 0;
    result.bytes = has_sib ? 6 : 5;
    const unsigned base = has_sib ? code[5] & 7 : code[4] & 7;
    const bool is_far = mode == 2 || (mode == 0 && base == 5);
    if (mode != 0 || base != 5) address = value_of(context, base + high_base);
    if (has_sib) {
        const unsigned index = (code[5] >> 3 & 7U) + (code[1] & 0x40 ? 0 : 8);
        result.has_index = index != 4;
        if (result.has_index) result.stride = value_of(context, index) << (code[5] >> 6);
    }
    if (mode == 1) address += signed_at<std::int8_t>(code + result.bytes);
    if (is_far) address += signed_at<std::int32_t>(code + result.bytes);
    result.bytes += is_far ? 4 : mode;
    if (!has_sib && mode == 0 && base == 5) // relative to the next instruction
        address += context.uc_mcontext.gregs[REG_RIP] + static_cast<std::int64_t>(result.bytes);
    result.address = reinterpret_cast<std::uint8_t*>(address);
}

instruction decode(const std::uint8_t* code, const ucontext_t& context) {
    const bool is_ours = code[0] == 0xC4 && (code[1] & 0x1F) == 2 && (code[2] & 0x84) == 0;
    if (!is_ours) refuse("an illegal instruction other than AMX's");
    instruction result{code[3],
                       code[2] & 3U,
                       code[4] >> 3 & 7U,
                       code[4] & 7U,
                       ~unsigned{code[2]} >> 3 & 7U,
                       code[4] < 0xC0,
                       false,
                       nullptr,
                       0,
                       5};
    if (result.has_memory) decode_memory(code, context, result);
    return result;
}

void configure(const std::uint8_t* from) {
    const auto is_zero = [&](int first, int last) {
        for (int i = first; i < last; ++i)
            if (from[i] != 0) return false;
        return true;
    };
    if (from[0] != 1 || !is_zero(1, 16) || !is_zero(32, 48) || !is_zero(56, 64))
        refuse("reserved bytes of a configuration are not zero");
    for (int t = 0; t < 8; ++t) {
        tiles[t] = {
            from[48 + t], static_cast<std::size_t>(from[16 + 2 * t] | from[17 + 2 * t] << 8), {}};
        if (tiles[t].rows > 16 || tiles[t].row_bytes > 64) refuse("a tile is too large");
    }
    configured = true;
}

float flushed(float value) {
    return std::abs(value) < 0x1p-126F ? 0 : value;
}

float bf16_at(const std::uint8_t* bytes) {
    const std::uint32_t bits = static_cast<std::uint32_t>(bytes[0] | bytes[1] << 8) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return flushed(value);
}

float dot(const std::uint8_t* row, const tile& b, std::size_t column, std::size_t half) {
    float sum = 0;
    for (std::size_t k = 0; k < b.rows; ++k)
        sum = flushed(std::fma(bf16_at(row + 4 * k + 2 * half),
                               bf16_at(b.bytes[k] + 4 * column + 2 * half), sum));
    return sum;
}

void multiply(tile& c, const tile& a, const tile& b) {
    if (&c == &a || &c == &b || &a == &b) refuse("a product uses one tile twice");
    if (c.rows != a.rows || c.row_bytes != b.row_bytes || a.row_bytes != 4 * b.rows)
        refuse("the tiles of a product do not match");
    for (std::size_t r = 0; r < c.rows; ++r)
        for (std::size_t n = 0; n < c.row_bytes / 4; ++n) {
            float sum;
            std::memcpy(&sum, c.bytes[r] + 4 * n, sizeof sum);
            sum = flushed(flushed(sum) +
                          flushed(dot(a.bytes[r], b, n, 0) + dot(a.bytes[r], b, n, 1)));
            std::memcpy(c.bytes[r] + 4 * n, &sum, sizeof sum);
        }
    ++product_count;
}

void move(const instruction& inst, bool loads) {
    tile& operand = tiles[inst.reg];
    for (std::size_t r = 0; r < operand.rows; ++r) {
        std::uint8_t* const row = inst.address + static_cast<std::int64_t>(r) * inst.stride;
        if (loads)
            std::memcpy(operand.bytes[r], row, operand.row_bytes);
        else
            std::memcpy(row, operand.bytes[r], operand.row_bytes);
    }
}

void run(const instruction& inst) {
    constexpr unsigned none = 0, f3 = 2, f2 = 3;
    const bool sets_up = inst.opcode == 0x49 && inst.prefix == none && inst.reg == 0;
    if (sets_up && inst.has_memory) return configure(inst.address);
    if (!configured && !sets_up) refuse("no configuration");
    if (sets_up && inst.rm == 0)
        configured = false;
    else if (inst.opcode == 0x49 && inst.prefix == f2 && !inst.has_memory && inst.rm == 0)
        std::memset(tiles[inst.reg].bytes, 0, sizeof tiles[inst.reg].bytes);
    else if (inst.opcode == 0x4B && (inst.prefix == f2 || inst.prefix == f3) && inst.has_index)
        move(inst, inst.prefix == f2);
    else if (inst.opcode == 0x5C && inst.prefix == f3 && !inst.has_memory)
        multiply(tiles[inst.reg], tiles[inst.rm], tiles[inst.third]);
    else
        refuse("an unknown instruction");
}

void trap(int, siginfo_t*, void* context) {
    auto& state = *static_cast<ucontext_t*>(context);
    auto& next = state.uc_mcontext.gregs[REG_RIP];
    const instruction inst = decode(reinterpret_cast<const std::uint8_t*>(next), state);
    run(inst);
    next += static_cast<greg_t>(inst.bytes);
}

} // namespace

trapped_tiles::trapped_tiles() {
    product_count = 0;
    struct sigaction action {};
    action.sa_sigaction = trap;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGILL, &action, &before);
}

trapped_tiles::~trapped_tiles() {
    sigaction(SIGILL, &before, nullptr);
}

std::int64_t trapped_tiles::products() const {
    return product_count;
}

bool trapped_tiles::are_configured() const {
    return configured;
}

} // namespace maskwise::test

#endif
