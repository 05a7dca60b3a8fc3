// The GIL, handed over while elements are moved.
#pragma once

#include <nanobind/nanobind.h>

#include <unistd.h>

namespace maskwise::python {

// Where the interpreter has ended meanwhile, Python up to 3.13 takes the thread down instead of
// giving the GIL back, by unwinding: no destructor here may run then, without a GIL. So the thread
// waits for the process to end, as it does from 3.14 on.
struct released_gil {
    explicit released_gil(bool wanted) : state(wanted ? PyEval_SaveThread() : nullptr) {}
    ~released_gil() {
        if (state == nullptr) return;
        try {
            PyEval_RestoreThread(state);
        } catch (...) {
            for (;;) pause();
        }
    }
    released_gil(const released_gil&) = delete;
    released_gil& operator=(const released_gil&) = delete;

    PyThreadState* state;
};

} // namespace maskwise::python
