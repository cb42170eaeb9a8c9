# bench_trees: the walker of backend trees beside other predictors; see
# t/bench/README.md.
if(TARGET tritonserver AND TARGET triton_trees)
    file(GLOB srcs CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/backends/trees/*.c)
    list(FILTER srcs EXCLUDE REGEX "/(trees|instance|model|runtime|options|predict|device)\\.c$")
    add_executable(bench_trees EXCLUDE_FROM_ALL
        ${CMAKE_SOURCE_DIR}/t/bench/trees.c ${srcs})
    target_include_directories(bench_trees PRIVATE
        ${CMAKE_SOURCE_DIR}/backends)
    set_target_properties(bench_trees PROPERTIES BUILD_RPATH "$ORIGIN")
    target_link_libraries(bench_trees PRIVATE backend_common tritonserver m dl)
endif()
