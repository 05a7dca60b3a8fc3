#include "onednn/program_file.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <link.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <vector>

namespace maskwise::onednn {
namespace {

using file_header = ElfW(Ehdr);
using segment = ElfW(Phdr);
using dynamic_entry = ElfW(Dyn);

// An open file. Each offset and count in it is checked against its size before it is used.
class program_file {
public:
    explicit program_file(const std::string& path)
        : path_(path), file_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
        if (file_ < 0 || fstat(file_, &status_) != 0)
            throw argument_error("cannot open '" + path + "': " + std::strerror(errno));
    }
    program_file(const program_file&) = delete;
    program_file& operator=(const program_file&) = delete;
    ~program_file() { close(file_); }

    file_header header() const { return read<file_header>(0, "ELF header"); }

    void check_kind() const {
        if (S_ISDIR(status_.st_mode)) refuse("is a directory, expected a program");
        if (!S_ISREG(status_.st_mode)) refuse("is no regular file, expected a program");
        if (access(path_.c_str(), X_OK) != 0) refuse("is not executable, expected a program");
        char magic[SELFMAG] = {};
        const ssize_t bytes = pread(file_, magic, sizeof magic, 0);
        if (bytes >= 2 && std::memcmp(magic, "#!", 2) == 0)
            refuse("is a script, expected a program: ask for the one that its first line names");
        if (bytes < SELFMAG || std::memcmp(magic, ELFMAG, SELFMAG) != 0)
            refuse("is no ELF file, expected a program");
        if ((status_.st_mode & (S_ISUID | S_ISGID)) != 0 ||
            fgetxattr(file_, "security.capability", nullptr, 0) > 0)
            refuse("is set-user-id, set-group-id or has capabilities, expected a program without: "
                   "the loader ignores LD_PRELOAD and LD_LIBRARY_PATH for it");
    }

    void check_machine(const file_header& own) const {
        const file_header given = header();
        const auto text = [](const file_header& of) {
            return "ELF class " + std::to_string(of.e_ident[EI_CLASS]) + ", byte order " +
                   std::to_string(of.e_ident[EI_DATA]) + ", machine " +
                   std::to_string(of.e_machine);
        };
        if (text(given) != text(own))
            refuse("is for another machine (" + text(given) + "), expected " + text(own));
        if (given.e_type != ET_EXEC && given.e_type != ET_DYN)
            refuse("has ELF type " + std::to_string(given.e_type) +
                   ", expected a program (2 or 3)");
    }

    void check_segments() const {
        const std::vector<segment> segments = read_segments();
        check_loader(segments);
        check_loads(segments);
        for (const segment& one : segments)
            if (one.p_type == PT_DYNAMIC) check_dynamic(one, segments);
    }

private:
    [[noreturn]] void refuse(const std::string& text) const {
        throw argument_error('\'' + path_ + "' " + text);
    }

    void require(std::uint64_t offset, std::uint64_t bytes, const char* part) const {
        const auto size = static_cast<std::uint64_t>(status_.st_size);
        if (offset > size || bytes > size - offset)
            refuse("is cut off: its " + std::string(part) + ", " + std::to_string(bytes) +
                   " bytes at offset " + std::to_string(offset) + ", ends behind the file's " +
                   std::to_string(size) + " bytes");
    }

    template <typename T>
    T read(std::uint64_t offset, const char* part) const {
        require(offset, sizeof(T), part);
        T value;
        if (pread(file_, &value, sizeof value, static_cast<off_t>(offset)) != ssize_t{sizeof value})
            refuse("cannot be read");
        return value;
    }

    std::vector<segment> read_segments() const {
        const file_header head = header();
        if (head.e_phnum == 0 || head.e_phentsize != sizeof(segment))
            refuse("has " + std::to_string(head.e_phnum) + " program headers of " +
                   std::to_string(head.e_phentsize) + " bytes, expected some of " +
                   std::to_string(sizeof(segment)));
        require(head.e_phoff, head.e_phnum * sizeof(segment), "program headers");
        std::vector<segment> segments;
        for (std::uint64_t i = 0; i < head.e_phnum; ++i)
            segments.push_back(
                read<segment>(head.e_phoff + i * sizeof(segment), "program headers"));
        return segments;
    }

    // In ascending order, and no two share a page: what lies where in memory is what the file says.
    void check_loads(const std::vector<segment>& segments) const {
        const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
        std::uint64_t end = 0;
        for (const segment& one : segments) {
            if (one.p_type != PT_LOAD) continue;
            require(one.p_offset, one.p_filesz, "segment");
            const std::uint64_t last = one.p_vaddr + one.p_memsz;
            if (one.p_memsz < one.p_filesz || last < one.p_vaddr ||
                one.p_vaddr / page * page < end || last > UINT64_MAX - page)
                refuse("has a segment of " + std::to_string(one.p_memsz) + " bytes at address " +
                       std::to_string(one.p_vaddr) + ", expected " + std::to_string(one.p_filesz) +
                       " or more, behind address " + std::to_string(end));
            end = (last + page - 1) / page * page;
        }
    }

    void check_loader(const std::vector<segment>& segments) const {
        const auto found = std::ranges::find(segments, PT_INTERP, &segment::p_type);
        if (found == segments.end())
            refuse("names no loader: it is statically linked, or a library; expected a program "
                   "that loads libraries");
        require(found->p_offset, found->p_filesz, "loader's name");
        std::string name;
        for (std::uint64_t i = 0; i < std::min<std::uint64_t>(found->p_filesz, PATH_MAX); ++i)
            name += read<char>(found->p_offset + i, "loader's name");
        name = name.c_str(); // NOLINT(readability-redundant-string-cstr): up to the first NUL
        std::error_code none;
        if (std::filesystem::equivalent(name, own_loader(), none)) return;
        std::ranges::replace_if(
            name, [](unsigned char c) { return std::isprint(c) == 0; }, '?');
        refuse("wants the loader '" + name + "', expected " + own_loader());
    }

    // Where the loader finds it: at its address, whatever the offset says. The loader runs the
    // audit libraries that it names even where it only lists.
    void check_dynamic(const segment& dynamic, const std::vector<segment>& segments) const {
        const auto around = std::ranges::find_if(segments, [&](const segment& one) {
            return one.p_type == PT_LOAD && dynamic.p_vaddr >= one.p_vaddr &&
                   dynamic.p_vaddr - one.p_vaddr < one.p_filesz;
        });
        if (around == segments.end()) refuse("has a dynamic section outside of its segments");
        const std::uint64_t skipped = dynamic.p_vaddr - around->p_vaddr;
        for (std::uint64_t at = skipped; around->p_filesz - at >= sizeof(dynamic_entry);
             at += sizeof(dynamic_entry)) {
            const auto tag = read<dynamic_entry>(around->p_offset + at, "dynamic section").d_tag;
            if (tag == DT_NULL) return;
            if (tag == DT_AUDIT || tag == DT_DEPAUDIT)
                refuse("names an audit library, expected a program without: the loader would run "
                       "it");
        }
        refuse("has a dynamic section without an end");
    }

    std::string path_;
    int file_;
    struct stat status_ = {};
};

int first_object(dl_phdr_info* found, std::size_t, void* to) {
    *static_cast<dl_phdr_info*>(to) = *found;
    return 1;
}

} // namespace

std::string own_loader() {
    dl_phdr_info own{};
    dl_iterate_phdr(first_object, &own); // the first is the program
    for (int i = 0; i < own.dlpi_phnum; ++i)
        if (own.dlpi_phdr[i].p_type == PT_INTERP)
            return reinterpret_cast<const char*>(own.dlpi_addr + own.dlpi_phdr[i].p_vaddr);
    throw error("maskwise-info itself names no loader");
}

void check_program(const std::string& path) {
    const program_file file(path);
    file.check_kind();
    file.check_machine(program_file("/proc/self/exe").header());
    file.check_segments();
}

} // namespace maskwise::onednn
