#include "process/worker.hpp"

#include "model/graph.hpp"
#include "process/own_command.hpp"
#include "report/result_json.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace maskwise::bench {
namespace {

using nlohmann::json;

std::string ending_text(int status) {
    if (WIFSIGNALED(status)) return fmt::format("was killed by {}", strsignal(WTERMSIG(status)));
    return fmt::format("ended with status {}", WEXITSTATUS(status));
}

} // namespace

worker::~worker() {
    stop();
}

void worker::start() {
    int to_child[2];
    int from_child[2];
    if (pipe2(to_child, O_CLOEXEC) != 0 || pipe2(from_child, O_CLOEXEC) != 0)
        throw std::system_error(errno, std::generic_category(), "pipe2");
    pid_ = fork();
    if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid_ == 0) {
        dup2(to_child[0], STDIN_FILENO);
        dup2(from_child[1], STDOUT_FILENO);
        execute_self({"--serve", fmt::format("-v{}", verbose_)});
        _exit(127);
    }
    close(to_child[0]);
    close(from_child[1]);
    requests_ = fdopen(to_child[1], "w");
    answers_ = fdopen(from_child[0], "r");
}

std::string worker::stop() {
    if (pid_ < 0) return "";
    std::fclose(requests_);
    std::fclose(answers_);
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return ending_text(status);
}

bool worker::send(const std::string& line) {
    if (pid_ < 0) start();
    return std::fputs((line + "\n").c_str(), requests_) >= 0 && std::fflush(requests_) == 0;
}

bool worker::receive(std::string& line) {
    char* buffer = nullptr;
    std::size_t capacity = 0;
    bool is_answer = false;
    while (!is_answer) {
        const ssize_t length = getline(&buffer, &capacity, answers_);
        if (length <= 0) break;
        line.assign(buffer, static_cast<std::size_t>(length));
        is_answer = line.rfind(answer_prefix, 0) == 0;
        if (!is_answer) std::fputs(line.c_str(), stdout);
    }
    std::free(buffer);
    if (is_answer) line.erase(0, std::strlen(answer_prefix));
    return is_answer;
}

case_result worker::run(const case_config& config) {
    std::string line;
    if (!send("run " + json(repro_flags(config)).dump()) || !receive(line)) {
        case_result died;
        died.state = verdict::aborted;
        died.reason = "the client " + stop();
        return died;
    }
    const json answer = json::parse(line);
    if (answer.contains("input_error")) throw input_error(answer["input_error"].get<std::string>());
    library_ = answer.value("library", library_);
    return result_from_json(answer.at("result"));
}

} // namespace maskwise::bench
