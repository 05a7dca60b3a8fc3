# What `cmake --install` puts down, and the CMake package by which a project finds it:
# find_package(maskwise) gives maskwise::maskwise, the C++ API, and
# maskwise::onednn, the plugin, to be linked before oneDNN; behind find_package(OpenVINO)
# maskwise::openvino, too, to be linked behind openvino::runtime.
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/maskwise")
if(TARGET maskwise_onednn)
    set_target_properties(maskwise_onednn PROPERTIES EXPORT_NAME onednn)
    install(TARGETS maskwise maskwise_kernels maskwise_onednn EXPORT maskwise_targets
            LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
            INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/maskwise"
            DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
    # A module that ONNX Runtime opens; nothing links it.
    install(TARGETS maskwise_onnxruntime LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
    # In a file of its own, because it names OpenVINO's target.
    if(TARGET maskwise_openvino)
        set_target_properties(maskwise_openvino PROPERTIES EXPORT_NAME openvino)
        install(TARGETS maskwise_openvino EXPORT maskwise_openvino_targets
                LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
                INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
        install(EXPORT maskwise_openvino_targets NAMESPACE maskwise::
                FILE maskwise-openvino-targets.cmake DESTINATION "${package_dir}")
    endif()
    install(TARGETS maskwise-info RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
    install(EXPORT maskwise_targets NAMESPACE maskwise:: FILE maskwise-targets.cmake
            DESTINATION "${package_dir}")
endif()
configure_package_config_file(
    "${CMAKE_CURRENT_LIST_DIR}/maskwise-config.cmake.in"
    "${PROJECT_BINARY_DIR}/maskwise-config.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/maskwise-config-version.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/maskwise-config.cmake"
              "${PROJECT_BINARY_DIR}/maskwise-config-version.cmake"
        DESTINATION "${package_dir}")
install(FILES LICENSE README.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")
