#pragma once

#include "base/error.hpp"
#include "onednn/abi.hpp"

#include <exception>
#include <new>
#include <string>

namespace maskwise::onednn {

// Runs Maskwise's own part of an entry point: its exceptions end here as a status, with the text in
// `reason`. Calls into the real library stay outside: what that throws is the client's.
template <typename Body>
abi::status guarded(std::string& reason, Body&& body) {
    try {
        body();
        return abi::success;
    } catch (const invalid_shape& failure) {
        reason = failure.what();
        return abi::invalid_shape;
    } catch (const invalid_argument& failure) {
        reason = failure.what();
        return abi::invalid_arguments;
    } catch (const std::bad_alloc&) {
        return abi::out_of_memory;
    } catch (const std::exception& failure) {
        reason = failure.what();
        return abi::runtime_error;
    }
}

template <typename Body>
abi::status guarded(Body&& body) {
    std::string reason;
    return guarded(reason, body);
}

} // namespace maskwise::onednn
