#include "runtime.hpp"

#include <algorithm>
#include <charconv>
#include <new>
#include <string>

namespace maskwise::ort {

runtime read_runtime(const OrtApi* api, std::string_view version) {
    runtime found{};
    const char* const minor = version.data() + std::min(version.find('.') + 1, version.size());
    std::from_chars(minor, version.data() + version.size(), found.minor);
    const auto* table = reinterpret_cast<const unused_function*>(api);
#define READ(slot, name, ...) found.name = reinterpret_cast<decltype(found.name)>(table[slot]);
#define MAIN READ
#include "functions.inc"
    table = reinterpret_cast<const unused_function*>(found.GetEpApi());
#define EP READ
#include "functions.inc"
#undef READ
    return found;
}

OrtStatus* status_of_exception(const runtime& with) noexcept {
    try {
        throw;
    } catch (const failed_call& failed) {
        return failed.status;
    } catch (const error& refused) {
        return with.CreateStatus(ORT_INVALID_ARGUMENT, refused.what());
    } catch (const std::bad_alloc&) {
        return with.CreateStatus(ORT_FAIL, "Maskwise: out of memory");
    } catch (const std::exception& failure) {
        return with.CreateStatus(ORT_FAIL, failure.what());
    }
}

} // namespace maskwise::ort
