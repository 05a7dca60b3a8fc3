#include "base/verbose.hpp"

#include "base/environment.hpp"
#include "base/first_use.hpp"

#include <cstdio>
#include <string>

namespace maskwise {

int verbose_level() {
    return at_first_use<[] {
        const auto number = read_environment_number("MASKWISE_VERBOSE");
        return number < 0 ? 0 : static_cast<int>(number > 2 ? 2 : number);
    }>();
}

void print_verbose(std::string_view text) {
    std::string line = "maskwise,";
    line.append(text);
    line.push_back('\n');
    std::fwrite(line.data(), 1, line.size(), stderr);
}

void print_decision(std::string_view name, std::string_view subject, std::string_view why) {
    std::string line = why.empty() ? "claim," : "refuse,";
    line.append(name).append(",").append(subject);
    if (!why.empty()) line.append(",").append(why);
    print_verbose(line);
}

} // namespace maskwise
