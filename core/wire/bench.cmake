# bench_channel: CPU per side and request, printed for several depths.
add_executable(bench_channel EXCLUDE_FROM_ALL
    ${CMAKE_SOURCE_DIR}/t/bench/channel.c)
target_link_libraries(bench_channel PRIVATE $<TARGET_OBJECTS:inf_base>
    $<TARGET_OBJECTS:inf_proto> $<TARGET_OBJECTS:inf_wire> ${INF_LIBS})
add_dependencies(bench_channel inf_base inf_proto inf_wire)

# bench_call: what a gRPC inference costs the codec.
add_executable(bench_call EXCLUDE_FROM_ALL
    ${CMAKE_SOURCE_DIR}/t/bench/call.c)
target_include_directories(bench_call PRIVATE ${GEN})
target_link_libraries(bench_call PRIVATE $<TARGET_OBJECTS:inf_base>
    $<TARGET_OBJECTS:inf_proto> $<TARGET_OBJECTS:inf_wire> ${INF_LIBS})
add_dependencies(bench_call inf_base inf_proto inf_wire)
