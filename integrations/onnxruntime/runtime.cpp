#include "runtime.hpp"

#include <algorithm>
#include <charconv>
#include <new>
#include <string>

namespace maskwise::ort {

runtime read_runtime(const OrtApi* main_table, std::string_view version) {
    runtime functions{};
    const char* const minor = version.data() + std::min(version.find('.') + 1, version.size());
    std::from_chars(minor, version.data() + version.size(), functions.minor);
    const auto* table = reinterpret_cast<const unused_function*>(main_table);
#define READ(slot, name, ...)                                                                      \
    functions.name = reinterpret_cast<decltype(functions.name)>(table[slot]);
#define MAIN READ
#include "functions.inc"
    table = reinterpret_cast<const unused_function*>(functions.GetEpApi());
#define EP READ
#include "functions.inc"
#undef READ
    return functions;
}

OrtStatus* status_of_exception(const runtime& api) noexcept {
    try {
        throw;
    } catch (const failed_call& failed) {
        return failed.status;
    } catch (const error& refused) {
        return api.CreateStatus(ORT_INVALID_ARGUMENT, refused.what());
    } catch (const std::bad_alloc&) {
        return api.CreateStatus(ORT_FAIL, "Maskwise: out of memory");
    } catch (const std::exception& failure) {
        return api.CreateStatus(ORT_FAIL, failure.what());
    }
}

} // namespace maskwise::ort
