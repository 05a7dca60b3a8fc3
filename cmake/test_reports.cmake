# The result of each case of a test program, for the summary of scripts/test; ctest only knows
# programs.
set(MASKWISE_TEST_REPORTS "${PROJECT_BINARY_DIR}/test_reports")

# gtest_discover_tests, with a report of each.
function(maskwise_discover_tests program)
    gtest_discover_tests(${program} DISCOVERY_TIMEOUT 300 XML_OUTPUT_DIR "${MASKWISE_TEST_REPORTS}" ${ARGN})
endfunction()

# The test's program (googletest, pytest, or Python's unittest by tests/support/unittest_report.py)
# and those that it starts report to a folder of this test.
function(maskwise_report_cases test)
    string(REGEX REPLACE "[^A-Za-z0-9._/-]" "_" folder "${MASKWISE_TEST_REPORTS}/${test}")
    set_property(TEST "${test}" APPEND PROPERTY ENVIRONMENT_MODIFICATION
        "MASKWISE_TEST_REPORT=set:${folder}"
        "GTEST_OUTPUT=set:xml:${folder}/"
        "PYTEST_ADDOPTS=set:--junitxml='${folder}/pytest.xml'")
endfunction()
