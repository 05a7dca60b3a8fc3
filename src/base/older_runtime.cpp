// Defines symbols of newer libstdc++ and glibc that code compiled by GCC 12 needs, in terms of
// older symbols. So the libraries run with glibc 2.28 and GCC 8's libstdc++ (manylinux_2_28). The
// definitions are hidden, and linked only if needed.
#include <cstring>
#include <ios>
#include <new>
#include <string>

#define MASKWISE_HIDDEN __attribute__((visibility("hidden")))

extern "C" {

// shared_ptr reads this variable. 0 makes shared_ptr count references by atomic operations.
MASKWISE_HIDDEN char __libc_single_threaded = 0;

void copy_exception_ptr(void* dst, const void* src);
__asm__(".symver copy_exception_ptr,_ZNSt15__exception_ptr13exception_ptrC1ERKS0_@CXXABI_1.3.3");
void destroy_exception_ptr(void* self);
__asm__(".symver destroy_exception_ptr,_ZNSt15__exception_ptr13exception_ptrD1Ev@CXXABI_1.3.3");

// std::__exception_ptr::exception_ptr::_M_addref: adds a reference by a copy that is never
// destroyed.
MASKWISE_HIDDEN void
add_reference(const void* self) __asm__("_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv");
void add_reference(const void* self) {
    void* copy = nullptr;
    copy_exception_ptr(&copy, self);
}

// std::__exception_ptr::exception_ptr::_M_release: drops a reference and sets the pointer to null.
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

// The default constructor and str() of string streams, which OpenVINO's macros use.
void construct_stream(void* self, std::ios_base::openmode mode);
__asm__(".symver _Z16construct_streamPvSt13_Ios_Openmode,"
        "_ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEC1ESt13_Ios_Openmode@"
        "GLIBCXX_3.4.21");
std::string text_of(const void* buffer);
__asm__(".symver _Z7text_ofB5cxx11PKv,"
        "_ZNKSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEE3strEv@GLIBCXX_3.4.21");

MASKWISE_HIDDEN void construct_out_stream(void* self) __asm__(
    "_ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEC1Ev");
void construct_out_stream(void* self) {
    construct_stream(self, std::ios_base::out);
}

MASKWISE_HIDDEN std::string text_of_lvalue(const void* buffer) __asm__(
    "_ZNKRSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEE3strEv");
std::string text_of_lvalue(const void* buffer) {
    return text_of(buffer);
}
