#!/bin/sh
# run.sh - what only a machine with an NVIDIA GPU can show; elsewhere it says
# what it skips and why, and succeeds.
#
#   sh t/gpu/run.sh
#
# INF_BUILD   build (default), build-asan or build-tsan
# CUDA_HOME   the toolkit, for its header alone (/usr/local/cuda)

set -eu

cd "$(dirname "$0")/../.."
build=${INF_BUILD:-build}
include=${CUDA_HOME:-/usr/local/cuda}/include

echo "== declarations"
if [ -f "$include/cuda.h" ]; then
    mkdir -p "$build/t-gpu"
    cc -std=gnu17 -Wall -Wextra -Werror -I. -I"$include" \
        -o "$build/t-gpu/declarations" t/gpu/declarations.c
    "$build/t-gpu/declarations"
else
    echo "skipped: no $include/cuda.h"
fi

echo "== memory"
ninja -C "$build" gpu_memory > "$build/ninja-gpu.log" 2>&1 \
    || { cat "$build/ninja-gpu.log"; exit 1; }
status=0
"$build/gpu_memory" || status=$?
if [ "$status" = 77 ]; then
    echo "skipped: there is no GPU that the core can use"
    exit 0
fi
[ "$status" = 0 ] || exit "$status"

echo "== server"
build/venv/bin/python t/gpu/serve.py
