#pragma once

namespace maskwise::onednn {

// The file of a oneDNN with the Graph API that the process has loaded, by any way and under any
// name; null where there is none. The text is the loader's. Opens nothing, so that it may run when
// the process ends: a library that has ended begins again where one opens it.
const char* find_loaded_onednn() noexcept;

} // namespace maskwise::onednn
