#include "input/search_path.hpp"

#include "model/graph.hpp"

#include <algorithm>

namespace maskwise::bench {

namespace fs = std::filesystem;

namespace {

// Repro lines are pasted in the directory they were printed in.
std::string shortest(const fs::path& path) {
    const std::string full = path.lexically_normal().string();
    const std::string relative = fs::absolute(path).lexically_relative(fs::current_path()).string();
    return relative.empty() || relative.starts_with("..") ? full : relative;
}

} // namespace

search_path::search_path(const fs::path& program) {
    const fs::path bin = program.parent_path();
    for (const char* relative : {"../../../benchdnn_inputs", "../share/maskwise/benchdnn_inputs"}) {
        const fs::path dir = (bin / relative).lexically_normal();
        if (fs::is_directory(dir)) dirs_.push_back(dir);
    }
}

std::string search_path::find(const std::string& name, const char* what) {
    if (name.empty()) throw input_error(std::string("--") + what + " needs a file");
    std::vector<fs::path> candidates{name};
    for (const fs::path& dir : dirs_) candidates.push_back(dir / name);
    for (const fs::path& path : candidates) {
        if (!fs::is_regular_file(path)) continue;
        const fs::path dir = path.parent_path();
        if (std::find(dirs_.begin(), dirs_.end(), dir) == dirs_.end())
            dirs_.insert(dirs_.begin(), dir);
        return shortest(path);
    }
    throw input_error(std::string("cannot find ") + what + " file '" + name + "'");
}

} // namespace maskwise::bench
