#pragma once

// Marks the text in the plugin's data that says whether the plugin is active. maskwise-info
// searches the memory of a running process for the marker. A macro, so that it can begin a string
// literal.
#define MASKWISE_STATE_MARKER "maskwise state: "
