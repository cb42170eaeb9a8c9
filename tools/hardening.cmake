# hardening.cmake - asserts, and the flags of hardening.sh, for all targets
# that follow.

# Asserts are on in every build type, the core's too: cmake's own types define
# NDEBUG, nothing of ours does or looks at it.
add_compile_options(-UNDEBUG)

if(INF_SANITIZE OR INF_FUZZ)
    return()
endif()

# programs too are position-independent (CMAKE_POSITION_INDEPENDENT_CODE)
include(CheckPIESupported)
check_pie_supported()

foreach(tool cc ld)
    file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/hardening.sh harden_${tool}
        REGEX "^harden_${tool}=")
    string(REGEX REPLACE "^[^\"]*\"(.*)\"$" "\\1" harden_${tool}
        "${harden_${tool}}")
    separate_arguments(harden_${tool} UNIX_COMMAND "${harden_${tool}}")
endforeach()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    ${CMAKE_CURRENT_LIST_DIR}/hardening.sh)

if(CMAKE_BUILD_TYPE STREQUAL Debug)     # no optimisation
    list(FILTER harden_cc EXCLUDE REGEX _FORTIFY_SOURCE)
endif()
add_compile_options(${harden_cc})
add_link_options(${harden_ld})
