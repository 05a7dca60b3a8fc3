/* The version of these headers, for the preprocessor; C and C++. version() in maskwise.hpp returns
 * the version of the loaded library. The build reads the project's version from these lines. */
#pragma once

#define MASKWISE_VERSION_MAJOR 0
#define MASKWISE_VERSION_MINOR 2
#define MASKWISE_VERSION_PATCH 0
