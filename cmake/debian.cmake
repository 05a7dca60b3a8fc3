# Debian's packages maskwise and maskwise-dev, and an archive of the files that `cmake --install`
# installs. scripts/packages builds them. dpkg-shlibdeps reads the dependencies from the libraries.
set(CPACK_PACKAGE_CONTACT
    "Maskwise maintainers <maintainers@users.noreply.a-seed-757acc24.example>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "masked attention and Select on CPUs")
set(CPACK_PACKAGE_FILE_NAME
    "maskwise-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_STRIP_FILES ON)

if(CMAKE_LIBRARY_ARCHITECTURE)
    set(lib_dir "lib/${CMAKE_LIBRARY_ARCHITECTURE}")
    maskwise_install_libraries("${lib_dir}" maskwise maskwise-dev EXCLUDE_FROM_ALL)
    maskwise_install_rest(maskwise maskwise-dev EXCLUDE_FROM_ALL)
    foreach(package maskwise maskwise-dev)
        install(FILES cmake/copyright DESTINATION "share/doc/${package}"
                COMPONENT ${package} EXCLUDE_FROM_ALL)
    endforeach()
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL maskwise maskwise-dev)
set(CPACK_COMPONENT_MASKWISE-DEV_DEPENDS maskwise)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_MASKWISE_PACKAGE_NAME maskwise)
set(CPACK_DEBIAN_MASKWISE-DEV_PACKAGE_NAME maskwise-dev)
set(CPACK_DEBIAN_MASKWISE_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_MASKWISE-DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_MASKWISE_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}")
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_COMPONENT_MASKWISE_DESCRIPTION
"Maskwise computes attention only for unmasked keys, and runs Select (where)
at memory bandwidth. It is a C++ library, a plugin for oneDNN Graph and an
execution provider for ONNX Runtime.
.
maskwise-info prints which oneDNN a program loads. maskwise-bench runs graphs on
the machine's oneDNN, checks the results and measures the time.")
set(CPACK_COMPONENT_MASKWISE-DEV_DESCRIPTION
"The headers of Maskwise's C++ API, its CMake package and its file for
pkg-config.")
include(CPack)
