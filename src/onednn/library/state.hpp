#pragma once

// Stands in the plugin's data before the text that says whether it is active; maskwise-info finds
// it in the memory of a running process. A literal, so that the text may begin with it.
#define MASKWISE_STATE_MARKER "maskwise state: "
