#include "onednn/info_process.hpp"

#include "base/error.hpp"
#include "onednn/library/state.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace maskwise::onednn {
namespace {

struct mapping {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool is_writable = false;
    std::string file;
};

std::ifstream open_of_process(int pid, const char* name) {
    const std::string path = "/proc/" + std::to_string(pid) + '/' + name;
    std::ifstream file(path, std::ios::binary);
    if (!file) throw error(path + ": " + std::strerror(errno));
    return file;
}

std::vector<mapping> mappings_of(int pid) {
    std::ifstream lines = open_of_process(pid, "maps");
    std::vector<mapping> mappings;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream fields(line);
        mapping entry;
        char dash = 0;
        std::string mode, offset, device, inode;
        fields >> std::hex >> entry.begin >> dash >> entry.end >> mode >> offset >> device >> inode;
        std::getline(fields >> std::ws, entry.file);
        entry.is_writable = mode.size() > 1 && mode[1] == 'w';
        mappings.push_back(std::move(entry));
    }
    return mappings;
}

std::string bytes_of(int pid, const mapping& entry) {
    std::ifstream memory = open_of_process(pid, "mem");
    std::string bytes(entry.end - entry.begin, '\0');
    memory.seekg(static_cast<std::streamoff>(entry.begin));
    memory.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(memory.gcount(), 0)));
    return bytes;
}

bool is_named(const mapping& entry, const char* name) {
    return std::filesystem::path(entry.file).filename().string().starts_with(name);
}

// The text after the state marker in these bytes; empty if the bytes contain no marker.
std::string state_in(const std::string& bytes) {
    const auto begin = bytes.find(MASKWISE_STATE_MARKER);
    if (begin == std::string::npos) return "";
    const auto text = begin + std::strlen(MASKWISE_STATE_MARKER);
    return bytes.substr(text, bytes.find('\0', text) - text);
}

void print_file(const char* name, const std::vector<mapping>& mappings, const char* prefix) {
    const auto entry = std::find_if(mappings.begin(), mappings.end(),
                                    [&](const mapping& each) { return is_named(each, prefix); });
    std::printf("%-14s %s\n", name, entry != mappings.end() ? entry->file.c_str() : "not loaded");
}

} // namespace

int print_process(int pid) {
    const std::vector<mapping> mappings = mappings_of(pid);
    print_file("plugin", mappings, "libmaskwise_onednn");
    print_file("libdnnl", mappings, "libdnnl");
    for (const mapping& entry : mappings) {
        if (!entry.is_writable || !is_named(entry, "libmaskwise_onednn")) continue;
        if (const std::string state = state_in(bytes_of(pid, entry)); !state.empty())
            std::printf("%-14s %s\n", "state", state.c_str());
    }
    return 0;
}

} // namespace maskwise::onednn
