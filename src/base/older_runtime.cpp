// Definitions of the symbols that code compiled by GCC 12 needs of libstdc++ 3.4.29 and glibc 2.32,
// in terms of older ones, so that the libraries run with glibc 2.28 and GCC 8's libstdc++
// (manylinux_2_28). Linked where they are needed, and hidden.
#include <cstring>
#include <new>

#define MASKWISE_HIDDEN __attribute__((visibility("hidden")))

extern "C" {

// Read by shared_ptr, which counts with atomic operations where this is 0.
MASKWISE_HIDDEN extern char __libc_single_threaded;
char __libc_single_threaded = 0;

void copy_exception_ptr(void* to, const void* from);
__asm__(".symver copy_exception_ptr,_ZNSt15__exception_ptr13exception_ptrC1ERKS0_@CXXABI_1.3.3");
void destroy_exception_ptr(void* self);
__asm__(".symver destroy_exception_ptr,_ZNSt15__exception_ptr13exception_ptrD1Ev@CXXABI_1.3.3");

// std::__exception_ptr::exception_ptr::_M_addref: a copy that is never destroyed.
MASKWISE_HIDDEN void
add_reference(const void* self) __asm__("_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv");
void add_reference(const void* self) {
    void* copy = nullptr;
    copy_exception_ptr(&copy, self);
}

// std::__exception_ptr::exception_ptr::_M_release, which leaves null.
MASKWISE_HIDDEN void
release(void* self) __asm__("_ZNSt15__exception_ptr13exception_ptr10_M_releaseEv");
void release(void* self) {
    destroy_exception_ptr(self);
    std::memset(self, 0, sizeof(void*));
}

[[noreturn]] MASKWISE_HIDDEN void throw_bad_length() __asm__("_ZSt28__throw_bad_array_new_lengthv");
void throw_bad_length() {
    throw std::bad_array_new_length();
}
}
