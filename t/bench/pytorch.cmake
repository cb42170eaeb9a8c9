# bench_pytorch: what backend pytorch adds to PyTorch's own call; see
# t/bench/README.md.
if(TARGET triton_pytorch AND PYTORCH_INCLUDE AND PYTORCH_LIBRARY)
    get_filename_component(dir ${PYTORCH_LIBRARY} DIRECTORY)
    string(REGEX REPLACE "/torch/csrc/api/include$" "" include
        ${PYTORCH_INCLUDE})
    add_executable(bench_pytorch EXCLUDE_FROM_ALL
        ${CMAKE_SOURCE_DIR}/t/bench/pytorch.cc
        ${CMAKE_SOURCE_DIR}/t/backends-fake/fakecore.c)
    set_target_properties(bench_pytorch PROPERTIES ENABLE_EXPORTS ON
        CXX_STANDARD 20 C_VISIBILITY_PRESET default)
    target_compile_definitions(bench_pytorch PRIVATE
        BACKEND="$<TARGET_FILE:triton_pytorch>"
        MODELS="${CMAKE_SOURCE_DIR}/examples/pytorch/models")
    target_include_directories(bench_pytorch SYSTEM PRIVATE ${include}
        ${include}/torch/csrc/api/include)
    target_link_options(bench_pytorch PRIVATE -Wl,--allow-shlib-undefined
        -Wl,-rpath-link,${dir})
    target_link_libraries(bench_pytorch PRIVATE cmocka dl ${PYTORCH_LIBRARY}
        ${dir}/libc10.so)
    set_target_properties(bench_pytorch PROPERTIES BUILD_RPATH
        "${CMAKE_BINARY_DIR}/backends/pytorch" BUILD_WITH_INSTALL_RPATH OFF)
    add_dependencies(bench_pytorch triton_pytorch)
endif()
