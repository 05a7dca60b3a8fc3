# The files of `cmake --install`, and the CMake package that finds them.
# find_package(maskwise) defines maskwise::maskwise (the C++ API) and maskwise::onednn (the plugin;
# link it before oneDNN). If find_package(OpenVINO) came first, find_package(maskwise) also defines
# maskwise::openvino (link it after openvino::runtime). pkg-config knows the C++ API only.
include(CMakePackageConfigHelpers)

# Installs into the prefix, with libraries below lib_dir. Debian's packages have their own lib_dir,
# so debian.cmake calls this function again. `extra` are further arguments of install().
function(maskwise_install_libraries lib_dir runtime dev extra)
    set(package_dir "${lib_dir}/cmake/maskwise")
    set(exports maskwise_${runtime}_targets)
    # libmaskwise.so, the link without a version, is in the dev component: only linkers use the link.
    install(TARGETS maskwise EXPORT ${exports} LIBRARY DESTINATION "${lib_dir}"
            COMPONENT ${runtime} NAMELINK_COMPONENT ${dev} ${extra}
            INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
    install(TARGETS maskwise_kernels EXPORT ${exports} LIBRARY DESTINATION "${lib_dir}"
            COMPONENT ${runtime} NAMELINK_SKIP ${extra})
    install(TARGETS maskwise_onednn EXPORT ${exports} LIBRARY DESTINATION "${lib_dir}"
            COMPONENT ${runtime} ${extra} INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
    # ONNX Runtime opens this module; nothing links it.
    install(TARGETS maskwise_onnxruntime LIBRARY DESTINATION "${lib_dir}"
            COMPONENT ${runtime} ${extra})
    install(EXPORT ${exports} NAMESPACE maskwise:: FILE maskwise-targets.cmake
            DESTINATION "${package_dir}" COMPONENT ${dev} ${extra})

    set(staging "${PROJECT_BINARY_DIR}/package/${runtime}")
    configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/maskwise-config.cmake.in"
        "${staging}/maskwise-config.cmake" INSTALL_DESTINATION "${package_dir}")
    write_basic_package_version_file("${staging}/maskwise-config-version.cmake"
                                     COMPATIBILITY SameMinorVersion)
    install(FILES "${staging}/maskwise-config.cmake" "${staging}/maskwise-config-version.cmake"
            DESTINATION "${package_dir}" COMPONENT ${dev} ${extra})
    file(RELATIVE_PATH prefix_from_pc "/${lib_dir}/pkgconfig" "/")
    configure_file("${PROJECT_SOURCE_DIR}/cmake/maskwise.pc.in" "${staging}/maskwise.pc" @ONLY)
    install(FILES "${staging}/maskwise.pc" DESTINATION "${lib_dir}/pkgconfig" COMPONENT ${dev} ${extra})
endfunction()

function(maskwise_install_rest runtime dev extra)
    install(TARGETS maskwise-info RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}"
            COMPONENT ${runtime} ${extra})
    if(TARGET maskwise-bench-installed)
        install(TARGETS maskwise-bench-installed RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}"
                COMPONENT ${runtime} ${extra})
        install(DIRECTORY benchdnn_inputs DESTINATION "${CMAKE_INSTALL_DATADIR}/maskwise"
                COMPONENT ${runtime} ${extra} PATTERN README.md EXCLUDE)
    endif()
    install(DIRECTORY include/maskwise DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
            COMPONENT ${dev} ${extra} PATTERN openvino.hpp EXCLUDE)
endfunction()

# OpenVINO's exported targets have a separate file, because they need the target openvino::runtime.
# Debian's packages omit these targets, because they cannot depend on OpenVINO's wheel.
function(maskwise_install_openvino)
    set_target_properties(maskwise_openvino PROPERTIES EXPORT_NAME openvino)
    install(TARGETS maskwise_openvino EXPORT maskwise_openvino_targets
            LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
            INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
    install(TARGETS maskwise_openvino_extension LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
    install(EXPORT maskwise_openvino_targets NAMESPACE maskwise::
            FILE maskwise-openvino-targets.cmake
            DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/maskwise")
    install(FILES include/maskwise/openvino.hpp
            DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/maskwise")
endfunction()

if(TARGET maskwise_onednn)
    set_target_properties(maskwise_onednn PROPERTIES EXPORT_NAME onednn)
    maskwise_install_libraries("${CMAKE_INSTALL_LIBDIR}" runtime dev "")
    maskwise_install_rest(runtime dev "")
    if(TARGET maskwise_openvino)
        maskwise_install_openvino()
    endif()
    install(FILES LICENSE cmake/copyright DESTINATION "${CMAKE_INSTALL_DOCDIR}")
    include(debian)
endif()
