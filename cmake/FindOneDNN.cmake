# maskwise_import_onednn(<target> <prefix>) defines the interface library <target> from oneDNN's
# headers and shared library below <prefix>. Does not use find_package, because the PyPI packages of
# oneDNN contain no CMake package.
function(maskwise_import_onednn target prefix)
    find_path(${target}_include oneapi/dnnl/dnnl_graph.h
              PATHS "${prefix}/include" "${prefix}/usr/include" NO_DEFAULT_PATH NO_CACHE)
    find_library(${target}_library dnnl
                 PATHS "${prefix}/lib" "${prefix}/lib64" "${prefix}/usr/lib/x86_64-linux-gnu"
                       "${prefix}/lib/${CMAKE_LIBRARY_ARCHITECTURE}" NO_DEFAULT_PATH NO_CACHE)
    if(NOT ${target}_include OR NOT ${target}_library)
        message(FATAL_ERROR "no oneDNN with the Graph API below '${prefix}': "
                            "header ${${target}_include}, library ${${target}_library}")
    endif()
    get_filename_component(library_dir "${${target}_library}" DIRECTORY)
    add_library(${target} INTERFACE)
    target_include_directories(${target} SYSTEM INTERFACE "${${target}_include}")
    # rpath-link: libdnnl's dependencies are in the same folder. unresolved-symbols: this oneDNN may
    # need a newer glibc than this machine's; scripts/lane provides that glibc at run time.
    target_link_libraries(${target} INTERFACE "${${target}_library}")
    target_link_options(${target} INTERFACE
        "LINKER:-rpath-link,${library_dir}" "LINKER:--unresolved-symbols=ignore-in-shared-libs")
    set_target_properties(${target} PROPERTIES ONEDNN_PREFIX "${prefix}"
                                               ONEDNN_LIBRARY_DIR "${library_dir}")
endfunction()
