# Toolchain for AArch64: Debian's cross compiler, and the libraries from scripts/setup --aarch64.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(libraries "${CMAKE_CURRENT_LIST_DIR}/../.deps/aarch64")
set(CMAKE_FIND_ROOT_PATH "${libraries}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# These headers are outside the compiler's search path.
set(CMAKE_CXX_FLAGS_INIT "-isystem ${libraries}/usr/include")
# Shared libraries that this project needs, for linking and for running.
set(library_folder "${libraries}/usr/lib/aarch64-linux-gnu")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-L${library_folder} -Wl,-rpath-link,${library_folder}")

# QEMU_CPU in the environment chooses the emulated CPU.
set(CMAKE_CROSSCOMPILING_EMULATOR
    qemu-aarch64 -L /usr/aarch64-linux-gnu -E "LD_LIBRARY_PATH=${library_folder}")
