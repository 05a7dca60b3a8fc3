#pragma once

// MASKWISE_OLDER defines a function `name` that calls the symbol version from before glibc 2.34.
#ifdef __aarch64__
#define MASKWISE_OLDEST "GLIBC_2.17"
#define MASKWISE_OLDEST_INFO "GLIBC_2.17"
#else
#define MASKWISE_OLDEST "GLIBC_2.2.5"
#define MASKWISE_OLDEST_INFO "GLIBC_2.3.3"
#endif
#define MASKWISE_OLDER_AT(version, result, name, parameters, arguments)                            \
    extern "C" result older_##name parameters;                                                     \
    __asm__(".symver older_" #name "," #name "@" version);                                         \
    extern "C" __attribute__((visibility("hidden"))) result name parameters {                      \
        return older_##name arguments;                                                             \
    }
#define MASKWISE_OLDER(result, name, parameters, arguments)                                        \
    MASKWISE_OLDER_AT(MASKWISE_OLDEST, result, name, parameters, arguments)
