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

// Every combination of the list options, in the nesting order of oneDNN's driver.
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

// Repro lines are pasted in the directory they were printed in.
std::string shortest(const fs::path& path) {
    const std::string full = path.lexically_normal().string();
    const std::string relative = fs::absolute(path).lexically_relative(fs::current_path()).string();
    return relative.empty() || relative.starts_with("..") ? full : relative;
}

// The search path of case and batch files: the name itself, the folders of files found before and
// those above them (oneDNN's batches name files from two folders up), then the project's
// benchdnn_inputs/ next to the executable's build or install tree.
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

    // The path of an existing file. `kind` ("case", "batch") is for the error text.
    // Throws input_error when there is none.
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

    void take(const std::string& token) {
        if (token == "--graph") return; // the driver's name on oneDNN's own command line
        const auto [name, value] = split_flag(token);
        if (name == "case") {
            case_config c = state_.fixed;
            c.file = search_.find(value, "case");
            c.is_of_batch = depth_ > 0;
            expand_case(state_, std::move(c), result_.cases);
            without_case_.clear();
        } else if (name == "batch") {
            take_batch(search_.find(value, "batch"));
        } else if (name == "reset") {
            state_ = flag_state{};
            without_case_.clear();
        } else {
            apply_flag(name, value, state_, result_.run);
            if (!sets_back(name, value)) without_case_ = token;
        }
    }

    command_line result() && {
        if (!without_case_.empty() && !result_.cases.empty())
            throw input_error(fmt::format(
                "{} comes after the last --case, but acts only on later ones", without_case_));
        return std::move(result_);
    }

private:
    // Whether the flag leaves the cases' defaults alone: the last flag of a batch, or an option of
    // the run.
    static bool sets_back(const std::string& name, const std::string& value) {
        flag_state state;
        run_options ignored;
        apply_flag(name, value, state, ignored);
        return state == flag_state{};
    }

    void take_batch(const std::string& path) {
        if (++depth_ > 16) throw input_error("batch files nest deeper than 16 at '" + path + "'");
        std::ifstream file(path);
        std::stringstream text;
        text << file.rdbuf();
        try {
            for (const std::string& token : tokenize_batch(text.str())) take(token);
        } catch (const input_error& error) {
            throw input_error(path + ": " + error.what());
        }
        --depth_;
    }

    search_path search_;
    flag_state state_;
    command_line result_;
    std::string without_case_; // the last option that no case has used yet
    int depth_ = 0;
};

} // namespace

std::vector<std::string> tokenize_batch(const std::string& text) {
    std::vector<std::string> tokens;
    std::istringstream lines(text);
    bool joins = false; // the token before ended with a backslash
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
    for (const std::string& argument : arguments) p.take(argument);
    return std::move(p).result();
}

} // namespace maskwise::bench
