# Lanes: the oneDNN installations that clients are compiled against and run with.
#
# MASKWISE_LANES lists the lanes as "<name>=<prefix>;..."; "auto" stands for the output of
# `scripts/lane --list`. This file defines
#
#   onednn_<lane>          per lane, a target to link a client with: the lane's headers and libdnnl
#   MASKWISE_LANE_NAMES    the names of all lanes; the default lane is first
#
# A client is a separate program in every lane, because oneDNN's headers differ. scripts/lane runs
# the tests. For example:
#
#   foreach(lane IN LISTS MASKWISE_LANE_NAMES)
#       add_executable(ports_${lane} ports.cpp)
#       target_link_libraries(ports_${lane} PRIVATE onednn_${lane} maskwise_compiler)
#       maskwise_add_lane_test(NAME ports LANE ${lane} PLUGIN none    COMMAND ports_${lane})
#       maskwise_add_lane_test(NAME ports LANE ${lane} PLUGIN preload COMMAND ports_${lane})
#   endforeach()
#
# maskwise_add_lane_test(NAME <name> LANE <lane> COMMAND <target or program> [argument...]
#                        [PLUGIN none|preload] [ENVIRONMENT VAR=value...] [LABELS label...]
#                        [TIMEOUT seconds])
#   adds the ctest test "<lane>/<name>" (PLUGIN none, the default) or "<lane>/<name>/preload",
#   with the labels lane-<lane> and plugin-none or plugin-preload. PLUGIN preload loads the built
#   libmaskwise_onednn.so by LD_PRELOAD, after the sanitizer's runtime if there is one. A client
#   that links the plugin before oneDNN uses PLUGIN none.
#   `ctest -L lane-3.2` runs a lane. `ctest -R preload` runs all tests that preload the plugin.
#
# maskwise_add_test_by_isa(<name> COMMAND ... [ENVIRONMENT VAR=value...] [LABELS label...]
#                          [TIMEOUT seconds] [REPORTS_CASES])
#   adds the ctest test <name>. Each line of MASKWISE_ISA_RUNS whose pattern matches <name> also adds
#   a test "<name>/<suffix>" with the label isa-<suffix>. maskwise_add_lane_test calls this function.
#
# In Debian's lanes, the lane's loader starts programs, so /proc/self/exe is the loader. Death tests
# must use googletest's "fast" style, and no program may start itself again by /proc/self/exe.
include(FindOneDNN)

set(MASKWISE_LANE_RUNNER "${CMAKE_CURRENT_LIST_DIR}/../scripts/lane")

# The tests that run again with a lower instruction set: suffix, ONEDNN_MAX_CPU_ISA, name pattern.
set(MASKWISE_ISA_RUNS
    "avx2 AVX2 ^3[.](13|7)/([a-z]+_contract|transcripts_agree|harness/(Faults|Attention|Batches))(/|$)"
    "sse4 SSE41 ^3[.](13|7)/((traps|lists_contract|redescribed_contract)/preload|harness/Attention)$")

function(maskwise_import_lanes)
    set(lanes "${MASKWISE_LANES}")
    if(lanes STREQUAL "auto")
        execute_process(COMMAND "${MASKWISE_LANE_RUNNER}" --list OUTPUT_VARIABLE lanes
                        OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    endif()
    if(CMAKE_CROSSCOMPILING)
        set(lanes "") # lanes are built for this machine, not for the target
    endif()
    set(names "")
    foreach(lane IN LISTS lanes)
        if(NOT lane MATCHES "^([A-Za-z0-9._-]+)=(.+)$")
            message(FATAL_ERROR "MASKWISE_LANES: '${lane}' is not <name>=<prefix>")
        endif()
        set(name "${CMAKE_MATCH_1}")
        maskwise_import_onednn("onednn_${name}" "${CMAKE_MATCH_2}")
        list(APPEND names "${name}")
    endforeach()
    if(MASKWISE_BUILD_TESTS AND "contract" IN_LIST MASKWISE_TEST_FOLDERS AND NOT names)
        message(FATAL_ERROR "no oneDNN to test with: run scripts/setup, or give "
                            "MASKWISE_LANES=<name>=<prefix>")
    endif()
    message(STATUS "oneDNN lanes: ${names}")
    set(MASKWISE_LANE_NAMES "${names}" PARENT_SCOPE)
endfunction()

# The sanitizer runtimes in use. LD_PRELOAD must list them before the plugin.
function(maskwise_sanitizer_runtimes out)
    set(runtimes "")
    foreach(pair "address=libasan.so" "thread=libtsan.so")
        string(REPLACE "=" ";" pair "${pair}")
        list(GET pair 0 sanitizer)
        list(GET pair 1 library)
        if(MASKWISE_SANITIZE MATCHES "${sanitizer}")
            execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -print-file-name=${library}
                            OUTPUT_VARIABLE path OUTPUT_STRIP_TRAILING_WHITESPACE)
            file(REAL_PATH "${path}" path)
            list(APPEND runtimes "${path}")
        endif()
    endforeach()
    set(${out} "${runtimes}" PARENT_SCOPE)
endfunction()

function(maskwise_add_lane_test)
    cmake_parse_arguments(arg "" "NAME;LANE;PLUGIN;TIMEOUT" "COMMAND;ENVIRONMENT;LABELS" ${ARGN})
    set(name "${arg_LANE}/${arg_NAME}")
    set(preload "")
    if(arg_PLUGIN STREQUAL "preload")
        string(APPEND name "/preload")
        list(JOIN MASKWISE_SANITIZER_RUNTIMES ":" preload)
        string(APPEND preload ":$<TARGET_FILE:maskwise_onednn>")
        string(REGEX REPLACE "^:" "" preload "${preload}")
        set(preload --preload "${preload}")
    elseif(arg_PLUGIN AND NOT arg_PLUGIN STREQUAL "none")
        message(FATAL_ERROR "maskwise_add_lane_test: PLUGIN '${arg_PLUGIN}' is not none or preload")
    else()
        set(arg_PLUGIN none)
    endif()
    list(POP_FRONT arg_COMMAND program)
    set(reports "")
    if(TARGET "${program}")
        get_target_property(libraries "${program}" LINK_LIBRARIES)
        if("GTest::gtest_main" IN_LIST libraries)
            set(reports REPORTS_CASES)
        endif()
        set(program "$<TARGET_FILE:${program}>")
    endif()
    get_target_property(prefix onednn_${arg_LANE} ONEDNN_PREFIX)
    if(arg_TIMEOUT)
        set(arg_TIMEOUT TIMEOUT ${arg_TIMEOUT})
    endif()
    maskwise_add_test_by_isa("${name}"
        COMMAND "${MASKWISE_LANE_RUNNER}" ${preload} "${prefix}" -- "${program}" ${arg_COMMAND}
        LABELS "lane-${arg_LANE}" "plugin-${arg_PLUGIN}" ${arg_LABELS}
        ENVIRONMENT ${arg_ENVIRONMENT} ${arg_TIMEOUT} ${reports})
endfunction()

function(maskwise_add_test name)
    cmake_parse_arguments(arg "REPORTS_CASES" "TIMEOUT" "COMMAND;ENVIRONMENT;LABELS" ${ARGN})
    add_test(NAME "${name}" COMMAND ${arg_COMMAND})
    set_tests_properties("${name}" PROPERTIES
        LABELS "${arg_LABELS}" ENVIRONMENT "${arg_ENVIRONMENT}")
    if(arg_TIMEOUT)
        set_tests_properties("${name}" PROPERTIES TIMEOUT ${arg_TIMEOUT})
    endif()
    if(arg_REPORTS_CASES)
        maskwise_report_cases("${name}")
    endif()
endfunction()

function(maskwise_add_test_by_isa name)
    maskwise_add_test("${name}" ${ARGN})
    foreach(run IN LISTS MASKWISE_ISA_RUNS)
        string(REPLACE " " ";" run "${run}")
        list(GET run 0 suffix)
        list(GET run 1 isa)
        list(GET run 2 names)
        if(name MATCHES "${names}")
            maskwise_add_test("${name}/${suffix}" ${ARGN}
                ENVIRONMENT "ONEDNN_MAX_CPU_ISA=${isa}" LABELS "isa-${suffix}")
        endif()
    endforeach()
endfunction()

maskwise_import_lanes()
maskwise_sanitizer_runtimes(MASKWISE_SANITIZER_RUNTIMES)
