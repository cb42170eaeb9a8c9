#!/bin/sh
# asan.sh - the tests about GPUs on the fake driver under ASan, with two GPUs,
# and those whose servers take more with eight.  Builds only what they need,
# into build-asan.
#
#   sh t/gpu/asan.sh [PYTEST-ARGUMENTS]

set -eu

cd "$(dirname "$0")/../.."
build=build-asan
mkdir -p "$build"

# the options of tools/build.sh, which completes the same directory
cmake -G Ninja -S . -B "$build" -DINF_SANITIZE=address,undefined \
    -DINF_NOPOOL=ON > "$build/cmake.log" 2>&1 \
    || { cat "$build/cmake.log"; exit 1; }
ninja -C "$build" inference-core triton_identity triton_cuda \
    triton_onnxruntime triton_python python_native python_package cuda_fake \
    nvml_fake > "$build/ninja.log" 2>&1 \
    || { cat "$build/ninja.log"; exit 1; }
INF_SANITIZE=address,undefined sh tools/nginx-module.sh "$build"

run()
{
    echo "with $1 GPUs"
    export INF_BUILD="$build" INF_GPU_DEVICES="$1" INF_GPU_DRIVER=fake
    shift
    INF_GPU_CYCLES=30 build/venv/bin/python -m pytest -q -n "$(nproc)" \
        --dist loadfile --timeout=900 "$@"
}

# Without the compiler's half minute for each architecture
run 2 t/44-cuda t/46-gpu-failures t/47-gpu-memory \
    t/17-shared-memory/test_cuda.py -k 'not every_architecture' "$@"
run 8 t/46-gpu-failures/test_faults.py t/47-gpu-memory \
    --ignore-glob '*/t/47-gpu-memory/test_python*' "$@"
