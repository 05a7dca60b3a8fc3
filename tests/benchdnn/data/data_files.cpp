#include "data/data_files.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

namespace maskwise::bench {

void read_inputs(const std::string& folder, tensor_map& values) {
    for (auto& [id, value] : values) {
        const std::string path = fmt::format("{}/{}", folder, id);
        std::ifstream file(path, std::ios::binary);
        if (!file) continue;
        const auto size = std::filesystem::file_size(path);
        if (size != value.bytes.size())
            throw std::runtime_error(fmt::format("{} has {} bytes, tensor {} of {} has {}", path,
                                                 size, id, to_text(value.shape),
                                                 value.bytes.size()));
        file.read(reinterpret_cast<char*>(value.bytes.data()), static_cast<std::streamsize>(size));
        if (!file) throw std::runtime_error("cannot read " + path);
    }
}

void write_output(const std::string& folder, std::size_t id, const tensor& value) {
    const std::string path = fmt::format("{}/{}.out", folder, id);
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(value.bytes.data()),
               static_cast<std::streamsize>(value.bytes.size()));
    if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

} // namespace maskwise::bench
