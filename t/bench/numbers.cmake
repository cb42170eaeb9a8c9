# bench_numbers: floats read and printed, beside libraries that do so.  Built
# where those are; see t/bench/README.md.
find_path(FAST_FLOAT fast_float/fast_float.h)
find_library(DOUBLE_CONVERSION double-conversion)
if(FAST_FLOAT AND DOUBLE_CONVERSION)
    add_executable(bench_numbers EXCLUDE_FROM_ALL
        ${CMAKE_SOURCE_DIR}/t/bench/numbers.cpp)
    foreach(lib base proto)
        target_link_libraries(bench_numbers PRIVATE
            $<TARGET_OBJECTS:inf_${lib}>)
        add_dependencies(bench_numbers inf_${lib})
    endforeach()
    target_compile_features(bench_numbers PRIVATE cxx_std_17)
    target_include_directories(bench_numbers PRIVATE ${GEN})
    target_link_libraries(bench_numbers PRIVATE ${INF_LIBS}
        ${DOUBLE_CONVERSION})
endif()
