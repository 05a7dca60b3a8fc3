option(MASKWISE_BUILD_TESTS "Build the tests and the harness (needs at least one oneDNN lane)" ON)
option(MASKWISE_BUILD_BENCHMARKS "Build the benchmarks (needs Google Benchmark)" OFF)
option(MASKWISE_BUILD_PYTHON "Build the Python package (needs nanobind and NumPy in Python_EXECUTABLE)" OFF)
option(MASKWISE_STD_THREADS
       "Run plans on std::thread instead of oneTBB (ThreadSanitizer reports false races in oneTBB)" OFF)
# contract, benchdnn and package need at least one oneDNN lane; fuzz needs support and unit.
set(MASKWISE_TEST_FOLDERS support unit kernel contract benchdnn guard package scripts fuzz onnxruntime sanitized
    CACHE STRING "Folders of tests/ to build")
set(MASKWISE_SANITIZE "" CACHE STRING "Sanitizers to build with: address,undefined or thread")
# Compiling the kernels takes a third of the build time.
set(MASKWISE_KERNEL_FLAGS "" CACHE STRING "More compiler flags for the kernels alone, such as -O1")
# One "<name>=<prefix>" per lane: an installed oneDNN that clients are compiled against.
# "auto" takes the lanes that scripts/setup installed.
set(MASKWISE_LANES "auto" CACHE STRING "oneDNN installations that tests and harness are built for")
# OpenVINO's folder, for example in its wheel. integrations/openvino is built against it.
# "auto" takes the OpenVINO that scripts/setup --python installed. OFF builds without OpenVINO.
set(MASKWISE_OPENVINO "auto" CACHE STRING "OpenVINO to build libmaskwise_openvino.so against")
