#pragma once

// Precedes the text in the plugin's data that says whether it is active. maskwise-info finds it in
// the memory of a running process. A macro, so that it can begin a string literal.
#define MASKWISE_STATE_MARKER "maskwise state: "
