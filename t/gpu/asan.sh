#!/bin/sh
# asan.sh - the tests about GPUs on the fake driver under ASan, with two GPUs
# and with eight.  Builds only what they need, into build-asan.
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
ninja -C "$build" inference-core triton_identity triton_cuda cuda_fake \
    nvml_fake > "$build/ninja.log" 2>&1 || { cat "$build/ninja.log"; exit 1; }
INF_SANITIZE=address,undefined sh tools/nginx-module.sh "$build"

tests=$(ls -d t/[0-9]*-cuda t/[0-9]*-gpu-* 2> /dev/null || true)
for devices in 2 8; do
    echo "with $devices GPUs"
    INF_BUILD="$build" INF_GPU_DEVICES=$devices INF_GPU_DRIVER=fake \
        INF_GPU_CYCLES=30 build/venv/bin/python -m pytest -q $tests \
        t/17-shared-memory/test_cuda.py "$@"
done
