# Parsing googletest and the standard library is half of a test's compile time, so the test programs
# below a folder share a precompiled header. With ccache, a precompiled header needs
# CCACHE_SLOPPINESS=pch_defines,time_macros.
function(maskwise_programs_below folder out)
    get_property(targets_below DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
    get_property(below DIRECTORY "${folder}" PROPERTY SUBDIRECTORIES)
    foreach(each IN LISTS below)
        maskwise_programs_below("${each}" targets)
        list(APPEND targets_below ${targets})
    endforeach()
    set(${out} ${targets_below} PARENT_SCOPE)
endfunction()

function(maskwise_precompile_test_headers folder)
    if(CMAKE_SYSTEM_PROCESSOR STREQUAL aarch64)
        return() # with a precompiled header, arm_sve.h causes an internal error in g++ 12
    endif()
    file(CONFIGURE OUTPUT test_headers.cpp CONTENT "int main() {}\n")
    add_executable(maskwise_test_headers "${CMAKE_CURRENT_BINARY_DIR}/test_headers.cpp")
    target_link_libraries(maskwise_test_headers PRIVATE maskwise_compiler GTest::gtest)
    target_precompile_headers(maskwise_test_headers PRIVATE
        <gtest/gtest.h> <algorithm> <atomic> <cmath> <functional> <map> <string> <thread> <vector>)
    maskwise_programs_below("${folder}" programs)
    foreach(program IN LISTS programs)
        get_target_property(libraries ${program} LINK_LIBRARIES)
        if("GTest::gtest_main" IN_LIST libraries)
            target_precompile_headers(${program} REUSE_FROM maskwise_test_headers)
        endif()
    endforeach()
endfunction()
