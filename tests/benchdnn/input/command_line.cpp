#include "input/command_line.hpp"

#include "input/flags.hpp"
#include "model/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

namespace maskwise::bench {
namespace {

namespace fs = std::filesystem;

// Appends a case for each combination of the list options, in the nesting order of oneDNN's driver.
void expand_case(const flag_state& state, case_config c, std::vector<case_config>& out) {
    const auto each = [](const std::vector<std::string>& values, std::string& field, auto&& next) {
        for (const std::string& value : values) {
            field = value;
            next();
        }
    };
    // clang-format off
    each(state.in_shapes, c.in_shapes, [&] {
    each(state.op_attrs, c.op_attrs, [&] {
    each(state.attr_fpmath, c.attr_fpmath, [&] {
    each(state.op_kind, c.op_kind, [&] {
    each(state.tensor_property, c.tensor_property, [&] {
    each(state.dt, c.dt, [&] {
    each(state.mask, c.mask, [&] {
    for (const std::int64_t mb : state.mb) {
        c.mb = mb;
        out.push_back(c);
    }
    }); }); }); }); }); }); });
    // clang-format on
}

// Returns the path relative to the current folder, where repro lines are run. Returns the
// normalized path if the file is outside this folder.
std::string shortest(const fs::path& path) {
    const std::string full = path.lexically_normal().string();
    const std::string relative = fs::absolute(path).lexically_relative(fs::current_path()).string();
    return relative.empty() || relative.starts_with("..") ? full : relative;
}

// Finds case and batch files. Tries the name itself, then the name in each known folder, then in
// each known folder's parent, because oneDNN's batches are relative to a parent. The known folders
// are those of earlier files, latest first, and the project's benchdnn_inputs/.
class search_path {
public:
    explicit search_path(const fs::path& program) {
        const fs::path bin = program.parent_path();
        for (const char* relative :
             {"../../../benchdnn_inputs", "../share/maskwise/benchdnn_inputs"}) {
            const fs::path dir = (bin / relative).lexically_normal();
            if (fs::is_directory(dir)) dirs_.push_back(dir);
        }
    }

    // The path of an existing file. `kind` ("case", "batch") is for the error text. Throws
    // input_error if no file is found.
    std::string find(const std::string& name, const char* kind) {
        if (name.empty()) throw input_error(std::string("--") + kind + " needs a file");
        std::vector<fs::path> candidates{name};
        for (const fs::path& dir : dirs_) candidates.push_back(dir / name);
        for (const fs::path& dir : dirs_) candidates.push_back(dir / ".." / name);
        for (const fs::path& path : candidates) {
            if (!fs::is_regular_file(path)) continue;
            const fs::path dir = path.parent_path();
            if (std::find(dirs_.begin(), dirs_.end(), dir) == dirs_.end())
                dirs_.insert(dirs_.begin(), dir);
            return shortest(path);
        }
        throw input_error(std::string("cannot find ") + kind + " file '" + name + "'");
    }

private:
    std::vector<fs::path> dirs_;
};

class parser {
public:
    explicit parser(const std::string& program) : search_(program) {}

    void apply(const std::string& token) {
        if (token == "--graph") return; // oneDNN's command lines name the driver
        const auto [name, value] = split_flag(token);
        if (name == "case") {
            case_config c = state_.fixed;
            c.file = search_.find(value, "case");
            c.is_of_batch = depth_ > 0;
            expand_case(state_, std::move(c), result_.cases);
            unused_option_.clear();
        } else if (name == "batch") {
            apply_batch(search_.find(value, "batch"));
        } else if (name == "reset") {
            state_ = flag_state{};
            unused_option_.clear();
        } else {
            apply_flag(name, value, state_, result_.run);
            if (!leaves_defaults(name, value)) unused_option_ = token;
        }
    }

    command_line result() && {
        if (!unused_option_.empty() && !result_.cases.empty())
            throw input_error(fmt::format(
                "{} comes after the last --case, so no case uses this option", unused_option_));
        return std::move(result_);
    }

private:
    // Whether the flag sets a run option or restores a default, as flags at a batch's end do.
    static bool leaves_defaults(const std::string& name, const std::string& value) {
        flag_state state;
        run_options ignored;
        apply_flag(name, value, state, ignored);
        return state == flag_state{};
    }

    void apply_batch(const std::string& path) {
        if (++depth_ > 16) throw input_error("batch files nest deeper than 16 at '" + path + "'");
        std::ifstream file(path);
        std::stringstream text;
        text << file.rdbuf();
        try {
            for (const std::string& token : tokenize_batch(text.str())) apply(token);
        } catch (const input_error& error) {
            throw input_error(path + ": " + error.what());
        }
        --depth_;
    }

    search_path search_;
    flag_state state_;
    command_line result_;
    std::string unused_option_; // the last option that no case has used yet
    int depth_ = 0;
};

} // namespace

std::vector<std::string> tokenize_batch(const std::string& text) {
    std::vector<std::string> tokens;
    std::istringstream lines(text);
    bool joins = false; // the previous token ended with a backslash
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line.substr(0, line.find('#')));
        for (std::string word; words >> word;) {
            const bool continues = word.back() == '\\';
            if (continues) word.pop_back();
            if (joins && !tokens.empty()) {
                tokens.back() += word;
            } else if (!word.empty() || continues) {
                tokens.push_back(word);
            }
            joins = continues;
        }
    }
    return tokens;
}

command_line parse_command_line(const std::vector<std::string>& arguments,
                                const std::string& program) {
    parser p(program);
    for (const std::string& argument : arguments) p.apply(argument);
    return std::move(p).result();
}

} // namespace maskwise::bench
