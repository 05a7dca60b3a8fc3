#pragma once

#include <string>

namespace maskwise::bench {

// From here on a crash of this process says which test it was in before the process dies of it.
// Called before each test, because runtimes that start late install handlers of their own.
void note_test(const std::string& repro);

} // namespace maskwise::bench
