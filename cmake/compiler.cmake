# The options of every target in the project: the plain baseline of the architecture, hidden
# symbols, warnings as errors. Kernels raise the instruction set inside their file.
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

# Shared libraries name every library that they use. Not with clang's sanitizers, which are in the
# program and in no library that could be named.
set(MASKWISE_NO_UNDEFINED "LINKER:-z,defs")
if(MASKWISE_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    set(MASKWISE_NO_UNDEFINED "")
endif()

# Before glibc 2.34, libdl had the loader's functions: src/base/older_libc.cpp.
set(MASKWISE_LIBDL "LINKER:--push-state,--no-as-needed,-l:libdl.so.2,--pop-state")

# Interface target that carries warnings and sanitizers to the project's own targets only.
add_library(maskwise_compiler INTERFACE)
target_compile_options(maskwise_compiler INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Werror)
if(MASKWISE_SANITIZE)
    set(MASKWISE_UNSANITIZED -fno-sanitize=all)
    target_compile_options(maskwise_compiler INTERFACE
        -fsanitize=${MASKWISE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    # Enumerations of the C ABI are passed as int, so a call through a pointer of oneDNN's type is
    # correct. Highway's scalar target converts NaN to an int that is never used.
    target_compile_options(maskwise_compiler INTERFACE
        $<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=function,float-cast-overflow>)
    # Checks for undefined behaviour would double the compile time of tests.
    set(is_test "$<PATH:IS_PREFIX,${PROJECT_SOURCE_DIR}/tests,$<TARGET_PROPERTY:SOURCE_DIR>>")
    target_compile_options(maskwise_compiler INTERFACE $<${is_test}:-fno-sanitize=undefined>)
    target_link_options(maskwise_compiler INTERFACE -fsanitize=${MASKWISE_SANITIZE})
endif()
