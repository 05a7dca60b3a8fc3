#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace maskwise::bench {

// Where case and batch files are looked for: as given, beside the files found before, then in
// the project's benchdnn_inputs/ next to the build (or install) tree of the executable.
class search_path {
public:
    explicit search_path(const std::filesystem::path& program);

    // The path of an existing file. `what` ("case", "batch") is for the error text.
    // Throws input_error when there is none.
    std::string find(const std::string& name, const char* what);

private:
    std::vector<std::filesystem::path> dirs_;
};

} // namespace maskwise::bench
