#include "runtime.hpp"

#include <new>
#include <string>

namespace maskwise::ort {

runtime read_runtime(const abi::api* api) {
    runtime found{};
    const auto* table = reinterpret_cast<const abi::unused_function*>(api);
#define MAIN(slot, name, result, parameters)                                                       \
    found.name = reinterpret_cast<decltype(found.name)>(table[slot]);
#define EP(slot, name, result, parameters)
#include "functions.inc"
#undef MAIN
#undef EP
    table = reinterpret_cast<const abi::unused_function*>(found.GetEpApi());
#define MAIN(slot, name, result, parameters)
#define EP(slot, name, result, parameters)                                                         \
    found.name = reinterpret_cast<decltype(found.name)>(table[slot]);
#include "functions.inc"
#undef MAIN
#undef EP
    return found;
}

abi::status* status_of_exception(const runtime& with) noexcept {
    try {
        throw;
    } catch (const failed_call& failed) {
        return failed.status;
    } catch (const error& refused) {
        return with.CreateStatus(abi::error_invalid_argument, refused.what());
    } catch (const std::bad_alloc&) {
        return with.CreateStatus(abi::error_fail, "Maskwise: out of memory");
    } catch (const std::exception& failure) {
        return with.CreateStatus(abi::error_fail, failure.what());
    }
}

} // namespace maskwise::ort
