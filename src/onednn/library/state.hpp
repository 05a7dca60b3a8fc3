#pragma once

// Marks the text in the plugin's data that says whether the plugin is active. maskwise-info
// searches the memory of a running process for the marker. The marker is a macro, so that string
// literals can begin with the marker.
#define MASKWISE_STATE_MARKER "maskwise state: "
