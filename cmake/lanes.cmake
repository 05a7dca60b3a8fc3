# maskwise_for_each_lane(<callback macro>) calls <callback>(<name> <target>) once a lane, where
# <target> is an imported library for that lane's oneDNN headers and libdnnl.
include(FindOneDNN)

function(maskwise_import_lanes)
    set(names "")
    foreach(lane IN LISTS MASKWISE_LANES)
        if(NOT lane MATCHES "^([A-Za-z0-9._-]+)=(.+)$")
            message(FATAL_ERROR "MASKWISE_LANES: '${lane}' is not <name>=<prefix>")
        endif()
        set(name "${CMAKE_MATCH_1}")
        set(prefix "${CMAKE_MATCH_2}")
        maskwise_import_onednn("onednn_${name}" "${prefix}")
        list(APPEND names "${name}")
    endforeach()
    set(MASKWISE_LANE_NAMES "${names}" PARENT_SCOPE)
endfunction()

maskwise_import_lanes()
