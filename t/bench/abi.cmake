# bench_abi: what one in-process inference costs; see t/bench/README.md.
if(TARGET tritonserver AND TARGET triton_identity)
    add_executable(bench_abi EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/t/bench/abi.c)
    # its malloc must be found before the C library's
    set_target_properties(bench_abi PROPERTIES ENABLE_EXPORTS ON
        C_VISIBILITY_PRESET default BUILD_RPATH "$ORIGIN")
    target_link_libraries(bench_abi PRIVATE tritonserver Threads::Threads dl)
    add_dependencies(bench_abi triton_identity)
endif()
