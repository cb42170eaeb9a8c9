# bench_openvino: what backend openvino adds to the library's own call; see
# t/bench/README.md.
if(TARGET triton_openvino AND OPENVINO_INCLUDE)
    add_executable(bench_openvino EXCLUDE_FROM_ALL
        ${CMAKE_SOURCE_DIR}/t/bench/openvino.c
        ${CMAKE_SOURCE_DIR}/t/backends-fake/fakecore.c)
    set_target_properties(bench_openvino PROPERTIES ENABLE_EXPORTS ON
        C_VISIBILITY_PRESET default)
    target_compile_definitions(bench_openvino PRIVATE
        BACKEND="$<TARGET_FILE:triton_openvino>"
        MODELS="${CMAKE_SOURCE_DIR}/examples/openvino/models")
    target_include_directories(bench_openvino SYSTEM PRIVATE
        ${OPENVINO_INCLUDE})
    get_filename_component(dir ${OPENVINO_LIBRARY} DIRECTORY)
    target_link_options(bench_openvino PRIVATE -Wl,-rpath-link,${dir})
    target_link_libraries(bench_openvino PRIVATE cmocka dl
        ${OPENVINO_LIBRARY})
    add_dependencies(bench_openvino triton_openvino)
endif()
