#pragma once

#include "runtime.hpp"

namespace maskwise::ort {

// An input of a node that runs.
struct input_tensor {
    const OrtValue* theirs = nullptr;
    tensor_desc desc;
    const void* data = nullptr; // not for strings
};

// The call of a node.
class call {
public:
    call(const runtime& with, OrtKernelContext* context) : with_(with), context_(context) {}

    input_tensor input(std::size_t index) const;
    // Of type undef where the node leaves it out.
    input_tensor optional_input(std::size_t index) const;
    // An output of this shape: ONNX Runtime finds its memory. Null where the node leaves it out.
    OrtValue* make_output(const dims& extents, std::size_t index = 0) const;
    void* output_data(const dims& extents, std::size_t index = 0) const;
    // The session's threads, as long as the node runs: so many, or fewer, of which one then takes
    // several parts. Throws failed_call where they are run.
    parallel_loop loop(int threads) const;

private:
    const runtime& with_;
    OrtKernelContext* context_;
};

// Of the machine, which a session has at most if nobody says another number.
int processors();

} // namespace maskwise::ort
