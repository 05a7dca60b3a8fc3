#pragma once

#include "base/error.hpp"
#include "onednn/library/abi.hpp"
#include "onednn/library/active.hpp"

#include <exception>
#include <new>
#include <string>
#include <utility>

namespace maskwise::onednn {

// Runs Maskwise's part of an entry point. An exception becomes a status, with its text in `reason`.
// `body` must not call a real function whose exceptions the client should get.
template <typename Body>
abi::status guarded(std::string& reason, Body&& body) {
    // Clears `reason` if the text cannot be allocated.
    const auto set_reason = [&](const std::exception& failure, abi::status status) noexcept {
        try {
            reason = failure.what();
        } catch (const std::bad_alloc&) {
            reason.clear();
        }
        return status;
    };
    try {
        body();
        return abi::success;
    } catch (const shape_error& failure) {
        return set_reason(failure, abi::invalid_shape);
    } catch (const argument_error& failure) {
        return set_reason(failure, abi::invalid_arguments);
    } catch (const std::bad_alloc&) {
        return abi::out_of_memory;
    } catch (const std::exception& failure) {
        return set_reason(failure, abi::runtime_error);
    }
}

template <typename Body>
abi::status guarded(Body&& body) {
    std::string reason;
    return guarded(reason, body);
}

// Records an object that the real library has created, if `status` is success and Maskwise is
// active. Destroys the object if it cannot be recorded.
template <typename Handle, typename Record>
abi::status record_created(abi::status status, Handle* handle, abi::status (*destroy)(Handle),
                           Record&& record) {
    if (!to_record(status)) return status;
    const auto recorded = guarded(record);
    if (recorded != abi::success) destroy(std::exchange(*handle, nullptr));
    return recorded;
}

} // namespace maskwise::onednn
