# Test programs write the result of each test case to this folder, for the summary of scripts/test,
# because ctest knows only whole programs.
set(MASKWISE_TEST_REPORTS "${PROJECT_BINARY_DIR}/test_reports")

# As gtest_discover_tests, but each test also writes a report.
function(maskwise_discover_tests program)
    gtest_discover_tests(${program} DISCOVERY_TIMEOUT 300 XML_OUTPUT_DIR "${MASKWISE_TEST_REPORTS}" ${ARGN})
endfunction()

# The test's program and its child processes write their reports to one folder per test. The
# programs use googletest, pytest, or unittest with tests/support/unittest_report.py.
function(maskwise_report_cases test)
    string(REGEX REPLACE "[^A-Za-z0-9._/-]" "_" folder "${MASKWISE_TEST_REPORTS}/${test}")
    set_property(TEST "${test}" APPEND PROPERTY ENVIRONMENT_MODIFICATION
        "MASKWISE_TEST_REPORT=set:${folder}"
        "GTEST_OUTPUT=set:xml:${folder}/"
        "PYTEST_ADDOPTS=set:--junitxml='${folder}/pytest.xml'")
endfunction()
