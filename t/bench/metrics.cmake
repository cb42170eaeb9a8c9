# bench_metrics: what is counted for a request; see t/bench/README.md.
if(TARGET inf_model)
    add_executable(bench_metrics EXCLUDE_FROM_ALL
        ${CMAKE_SOURCE_DIR}/t/bench/metrics.c)
    foreach(lib base proto wire tensor model)
        target_link_libraries(bench_metrics PRIVATE
            $<TARGET_OBJECTS:inf_${lib}>)
        add_dependencies(bench_metrics inf_${lib})
    endforeach()
    target_include_directories(bench_metrics PRIVATE ${GEN})
    target_link_libraries(bench_metrics PRIVATE ${INF_LIBS})
endif()
