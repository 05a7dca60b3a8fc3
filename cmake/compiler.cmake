# The compiler options of every target: the architecture's baseline instruction set, hidden symbols,
# and warnings as errors. Kernels enable further instruction sets in their source.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")

include(GNUInstallDirs)
find_package(Threads REQUIRED)

# Undefined symbols of a shared library are errors. Clang links its sanitizers into programs only,
# so a sanitized library has undefined symbols.
set(MASKWISE_NO_UNDEFINED "LINKER:-z,defs")
if(MASKWISE_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    set(MASKWISE_NO_UNDEFINED "")
endif()

# Before glibc 2.34, dlopen and dlsym were in libdl. src/base/older_libc.cpp binds these older
# versions, so libraries must list libdl as a dependency.
set(MASKWISE_LIBDL "LINKER:--push-state,--no-as-needed,-l:libdl.so.2,--pop-state")

# Warnings and sanitizers. Only the project's own targets link this interface target.
add_library(maskwise_compiler INTERFACE)
target_compile_options(maskwise_compiler INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Werror)
if(MASKWISE_SANITIZE)
    set(MASKWISE_UNSANITIZED -fno-sanitize=all)
    target_compile_options(maskwise_compiler INTERFACE
        -fsanitize=${MASKWISE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    # Disables two checks that give false positives. function: the plugin's C functions have int in
    # place of oneDNN's enumerations. float-cast-overflow: Highway's scalar target converts NaN to
    # an int that is never used.
    target_compile_options(maskwise_compiler INTERFACE
        $<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=function,float-cast-overflow>)
    # Tests omit the checks for undefined behaviour, which double a test's compile time.
    set(is_test "$<PATH:IS_PREFIX,${PROJECT_SOURCE_DIR}/tests,$<TARGET_PROPERTY:SOURCE_DIR>>")
    target_compile_options(maskwise_compiler INTERFACE $<${is_test}:-fno-sanitize=undefined>)
    target_link_options(maskwise_compiler INTERFACE -fsanitize=${MASKWISE_SANITIZE})
endif()
