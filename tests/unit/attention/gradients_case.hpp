#pragma once

#include "attention/run_gradients.hpp"
#include "support/attention_case.hpp"

namespace maskwise::test {

// An attention case, the gradient of dst, and the computed gradients of the inputs.
struct gradients_case {
    attention_case attention;
    attention_tensor dst, query, key, value, bias, sinks; // gradients

    attention_gradients_desc desc() const {
        return {attention.desc, dst.desc(),  query.desc(), key.desc(),
                value.desc(),   bias.desc(), sinks.desc()};
    }
    attention_gradients_operands operands() const {
        return {attention.operands(), dst.elements.data,  query.elements.data, key.elements.data,
                value.elements.data,  bias.elements.data, sinks.elements.data};
    }
};

// An operand and its gradient. Checks sum the gradient over the operand's broadcast dimensions.
struct checked_operand {
    const char* name;
    attention_tensor attention_case::*operand;
    attention_tensor gradients_case::*gradient;
};
inline constexpr checked_operand gradient_operands[] = {
    {"query", &attention_case::query, &gradients_case::query},
    {"key", &attention_case::key, &gradients_case::key},
    {"value", &attention_case::value, &gradients_case::value},
    {"bias", &attention_case::bias, &gradients_case::bias},
    {"sinks", &attention_case::sinks, &gradients_case::sinks},
};

// Adds statistics, a random gradient of dst, and memory for the other gradients in random types and
// layouts.
gradients_case with_gradients(generator& random, attention_case problem);
// A random case whose gradients central differences can check.
gradients_case make_gradients_case(generator& random);

// A parallel_loop that runs on the calling thread but reports `threads` threads.
parallel_loop calling_thread_of(int threads);
// Runs attention and its gradients with the target's kernels.
void run(const gradients_case& problem, const kernel_table& target, int threads = 1);

// Runs attention and its gradients on 1 to 3 threads. Returns "", or the fault if an input or bytes
// around a gradient were written.
std::string run_checked(generator& random, const gradients_case& problem,
                        const kernel_table& target);
// Like run_checked, and compares the gradients with central differences of attention's definition
// in double precision. Returns "" or the fault.
std::string check_gradients(generator& random, gradients_case& problem, const kernel_table& target);

} // namespace maskwise::test
