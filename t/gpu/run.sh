#!/bin/sh
# run.sh - what only a machine with an NVIDIA GPU can show, and the table of
# figures.  In a checkout it takes what is built there; in a directory that
# pack.sh has made it unpacks that first, and needs no network.
#
#   sh run.sh [--fake] [--rebuild] [DIR]
#
# --fake      the fake driver, on any machine: a rehearsal
# --rebuild   builds core and backends here before (gcc, cmake, ninja)
# DIR         where a pack is unpacked to (work, beside this script)
#
# INF_BUILD        in a checkout: build (default), build-asan or build-tsan
# INF_GPU_DRIVER   fake or real; unset: real
# INF_GPU_STEPS    which of the steps below (all)
# INF_GPU_TESTS    which tests, as pytest names them (all that are for GPUs)
# PYTHON           the interpreter (build/venv's, python3)
# CUDA_HOME        the toolkit: header, NVRTC, cuBLAS (/usr/local/cuda)
#
# Without a GPU it says what it skips, and succeeds.

set -u

here=$(cd "$(dirname "$0")" && pwd)
rebuild=
work=
summary=
failed=
passed_tests=0
failed_tests=0
steps=${INF_GPU_STEPS:-declarations memory server tests table}

main()
{
    for argument; do
        case $argument in
        --fake) INF_GPU_DRIVER=fake ;;
        --rebuild) rebuild=1 ;;
        -*) echo "run.sh: unknown option $argument" >&2; exit 1 ;;
        *) work=$argument ;;
        esac
    done
    export INF_GPU_DRIVER="${INF_GPU_DRIVER:-real}"

    if [ -f "$here/sources.tar.xz" ]; then
        unpack
    else
        root=$(cd "$here/../.." && pwd)
        build=${INF_BUILD:-build}
    fi
    cd "$root" || exit 1
    export INF_BUILD="$build"
    find_python
    if [ -f "$here/sources.tar.xz" ]; then
        lay_wheels
        lay_onnxruntime
    fi
    find_toolkit
    [ -z "$rebuild" ] || step rebuild build_again
    find_gpus

    for name in $steps; do
        step "$name" "run_$name"
    done
    finish
}

# step NAME COMMAND: runs it; 77 is "skipped", and it has said why
step()
{
    echo "== $1"
    began=$(date +%s)
    "$2"
    case $? in
    0) result=ok ;;
    77) result=skipped ;;
    *) result=FAILED failed="$failed $1" ;;
    esac
    summary="$summary
  $(printf '%-14s %-8s %4d s' "$1" "$result" $(($(date +%s) - began)))"
}

finish()
{
    echo
    echo "== summary ($INF_GPU_DRIVER driver)$summary"
    echo "tests: $passed_tests passed, $failed_tests failed"
    if [ -n "$failed" ]; then
        echo "FAILED:$failed"
        exit 1
    fi
    exit 0
}

skip()
{
    echo "skipped: $*"
    return 77
}

# ---- a pack

unpack()
{
    work=${work:-$here/work}
    mkdir -p "$work"
    work=$(cd "$work" && pwd)
    root=$work/nginx-inference
    build=$root/build
    echo "== unpack into $work"
    cat "$here/MANIFEST"
    rm -rf "$root"
    mkdir -p "$root" "$work/root"
    tar -C "$root" -xJf "$here/sources.tar.xz" \
        && tar -C "$root" -xJf "$here/build.tar.xz" \
        && tar -C "$work/root" -xJf "$here/root.tar.xz" || exit 1
    # newer than their sources, or tests would compile them again
    find "$build" -exec touch {} +
    export INF_NGINX="$work/root/bin/nginx"
    PATH=$PATH:$work/root/bin
    lay_libraries
}

# Libraries that this machine lacks, or has in a version that is too old; a
# directory with all of them would be found by its own programs, too.
lay_libraries()
{
    mkdir -p "$work/lib"
    export LD_LIBRARY_PATH="$work/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    while :; do
        missing=$(find "$work/root/bin" "$work/lib" "$build" -type f \
            \( -perm -u+x -o -name '*.so*' \) -exec ldd {} + 2>&1 \
            | sed -n -e 's/^[[:space:]]*\(lib[^ ]*\) => not found.*/\1/p' \
                -e 's/.*\/\(lib[^ :/]*\): version .* not found.*/\1/p' \
            | sort -u)
        new=
        for library in $missing; do
            if [ -f "$work/root/lib/$library" ] \
                && [ ! -f "$work/lib/$library" ]
            then
                cp "$work/root/lib/$library" "$work/lib/"
                new=1
                echo "library from the pack: $library"
            fi
        done
        [ -n "$new" ] || break
    done
}

# Only modules that the interpreter lacks.
lay_wheels()
{
    mkdir -p "$work/site"
    export PYTHONPATH="$work/site${PYTHONPATH:+:$PYTHONPATH}"
    for wheel in "$here"/wheels/*.whl; do
        [ -f "$wheel" ] || continue
        name=$(basename "$wheel" | sed 's/-.*//')
        if "$PYTHON" -c "import importlib.metadata as m, sys
m.distribution(sys.argv[1])" "$name" 2>/dev/null; then
            continue
        fi
        echo "wheel from the pack: $(basename "$wheel")"
        "$PYTHON" -m zipfile -e "$wheel" "$work/site" || exit 1
    done
}

# The interpreter's onnxruntime, if it has one, is the backend's library.
lay_onnxruntime()
{
    library=$("$PYTHON" -c 'import glob, importlib.util, os
found = importlib.util.find_spec("onnxruntime")
print(*glob.glob(os.path.join(os.path.dirname(found.origin), "capi",
                              "libonnxruntime.so.1*")) if found else "")')
    if [ -n "$library" ] && [ -d "$build/backends/onnxruntime" ]; then
        ln -sf "$library" "$build/backends/onnxruntime/libonnxruntime.so.1"
        echo "ONNX Runtime: $library"
    else
        echo "left out: backend onnxruntime (no library on this machine)"
        rm -rf "$build/backends/onnxruntime"
    fi
}

# ---- building here, with the headers and libraries of the pack

build_again()
{
    for tool in gcc g++ cmake ninja; do
        command -v $tool > /dev/null || { skip "no $tool"; return 77; }
    done
    if [ ! -f "$here/sources.tar.xz" ]; then
        sh tools/build.sh "$build"
        return
    fi

    again=$root/build-again
    mkdir -p "$again/gen" "$work/link" "$work/tools"
    cp -a "$build"/gen/* "$again/gen/"
    for library in "$work"/root/lib/*; do
        ln -sf "$library" "$work/link/$(basename "$library" \
            | sed 's/\.so\..*/.so/')"
    done
    # the generated files travel; there is no compiler of protobuf-c
    printf '#!/bin/sh\nexec touch %s/*\n' "$again/gen" \
        > "$work/tools/protoc-c"
    chmod +x "$work/tools/protoc-c"
    (
        export PATH="$work/tools:$PATH" CPATH="$work/root/include" \
            LIBRARY_PATH="$work/link"
        cmake -G Ninja -S . -B "$again" && ninja -C "$again" inference-core \
            triton_identity triton_cuda cuda_fake nvml_fake gpu
    ) > "$work/rebuild.log" 2>&1 || { tail -40 "$work/rebuild.log"; return 1; }
    for file in inference-core libtritonserver.so gpu_memory gpu_bare gpu_core
    do
        cp "$again/$file" "$build/$file"
    done
    (cd "$again" && cp --parents backends/*/libtriton_*.so t-cuda/*.so \
        "$build")
}

# ---- what is here

find_python()
{
    if [ -z "${PYTHON:-}" ]; then
        PYTHON=python3
        [ ! -x build/venv/bin/python ] || PYTHON=$root/build/venv/bin/python
    fi
    echo "python: $("$PYTHON" -V) $(command -v "$PYTHON")"
}

# Directories of NVRTC and cuBLAS: the toolkit's, or of Python packages.
find_toolkit()
{
    for library in libnvrtc.so libcublas.so; do
        found=$(ls -d "${CUDA_HOME:-/usr/local/cuda}"/lib64/$library.1* \
            2> /dev/null | head -1)
        [ -n "$found" ] || found=$("$PYTHON" -c 'import glob, sys
for path in sys.path:
    for found in glob.glob(f"{path}/nvidia/*/lib/{sys.argv[1]}.1*"):
        print(found)
        sys.exit()' $library)
        if [ -n "$found" ]; then
            echo "toolkit: $found"
            LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}${found%/*}"
            export LD_LIBRARY_PATH
        else
            echo "not here: $library; what needs it is not tested"
        fi
    done
}

find_gpus()
{
    gpus=$(cd t && "$PYTHON" -c '
from lib import gpu
print(gpu.devices())') || exit 1
    echo "GPUs of the $INF_GPU_DRIVER driver: $gpus"
    if [ "$gpus" = 0 ]; then
        echo "skipped: there is no GPU; --fake is a rehearsal without one"
        steps=declarations
    fi
    environment=$(cd t && "$PYTHON" -c '
from lib import gpu
print(*gpu.env())') || exit 1
}

# ---- the steps

run_declarations()
{
    include=${CUDA_HOME:-/usr/local/cuda}/include
    if [ ! -f "$include/cuda.h" ]; then
        skip "no $include/cuda.h"
        return 77
    fi
    mkdir -p "$build/t-gpu"
    gcc -std=gnu17 -Wall -Wextra -Werror -I. -I"$include" \
        -o "$build/t-gpu/declarations" t/gpu/declarations.c \
        && "$build/t-gpu/declarations"
}

complete()
{
    [ ! -f "$build/build.ninja" ] || ninja -C "$build" gpu \
        > "$build/ninja-gpu.log" 2>&1 \
        || { cat "$build/ninja-gpu.log"; return 1; }
}

run_memory()
{
    if [ "$INF_GPU_DRIVER" = fake ]; then
        skip "the fake driver has unit tests of its own"
        return 77
    fi
    complete && "$build/gpu_memory"
}

run_server()
{
    "$PYTHON" t/gpu/serve.py
}

# The directories about GPUs, and every file that takes its driver from
# t/lib/gpu.py.
run_tests()
{
    tests=${INF_GPU_TESTS:-$({ ls -d t/[0-9]*-cuda t/[0-9]*-gpu-*
        grep -rl 'gpu\.env(' --include='test_*.py' t/[0-9]*; } 2> /dev/null \
        | sort)}
    "$PYTHON" -m pytest -v --tb=short -o console_output_style=classic \
        $tests > "$build/gpu-tests.log" 2>&1
    status=$?
    grep -E '^t/|^left out|^(FAILED|ERROR) |^=|^E  ' "$build/gpu-tests.log"
    passed_tests=$(grep -cE '^t/.* PASSED' "$build/gpu-tests.log")
    failed_tests=$(grep -cE '^t/.* (FAILED|ERROR)' "$build/gpu-tests.log")
    return $status
}

run_table()
{
    complete && "$PYTHON" t/gpu/table.py
}

main "$@"
