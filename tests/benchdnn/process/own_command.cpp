#include "process/own_command.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace maskwise::bench {
namespace {

std::vector<std::string> command; // the loader's arguments, if any, then the program's path

std::vector<std::string> full_command_line() {
    std::vector<std::string> words;
    std::ifstream file("/proc/self/cmdline");
    for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
    return words;
}

} // namespace

void remember_command(int argc, char** argv) {
    command = full_command_line();
    const auto program_arguments = static_cast<std::size_t>(argc);
    const std::size_t loader_words =
        command.size() > program_arguments ? command.size() - program_arguments : 0;
    command.resize(loader_words);
    std::error_code ignored;
    command.push_back(loader_words > 0
                          ? argv[0]
                          : std::filesystem::read_symlink("/proc/self/exe", ignored).string());
}

std::string own_path() {
    return command.back();
}

void execute_self(const std::vector<std::string>& arguments) {
    std::vector<std::string> words = command;
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    execv(words[0].c_str(), pointers.data());
}

} // namespace maskwise::bench
