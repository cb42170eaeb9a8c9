#!/bin/sh
# run.sh - installs, builds and tests everything; one summary at the end.
#
#   sh t/run.sh [PYTEST-ARGUMENTS]
#
# INF_BUILD        build (default), build-asan or build-tsan
# INF_FUZZ_SECONDS how long each fuzzer runs; unset: none

set -u

cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin
build=${INF_BUILD:-build}
failed=
summary=

# step NAME COMMAND...: runs it and remembers how it ended
step()
{
    name=$1
    shift
    echo "== $name"
    began=$(date +%s)
    if "$@"; then
        result=ok
    else
        result=FAILED
        failed="$failed $name"
    fi
    summary="$summary
  $(printf '%-12s %-7s %4d s' "$name" "$result" $(($(date +%s) - began)))"
}

# must NAME COMMAND...: nothing after it makes sense when it fails
must()
{
    step "$@"
    [ -z "$failed" ] || finish
}

finish()
{
    echo
    echo "== summary$summary"
    if [ -n "$failed" ]; then
        echo "FAILED:$failed"
        exit 1
    fi
    echo "all passed"
    exit 0
}

build_units()
{
    ninja -C "$build" -j "$(nproc)" unit > "$build/ninja-unit.log" 2>&1 \
        || { cat "$build/ninja-unit.log"; return 1; }
}

run_units()
{
    TSAN_OPTIONS="suppressions=$(pwd)/t/lib/tsan.supp" \
        ctest --test-dir "$build" --output-on-failure -j "$(nproc)" \
        --no-tests=error
}

# Tests wait more than they compute, so a process of pytest for each processor.
# Short names for directories, because sockets lie in them.  A test that hangs
# fails after 15 minutes, and the others go on.
run_black_box()
{
    temp=$(mktemp -d /tmp/pytest-XXXXXX)
    status=0
    INF_BUILD="$build" build/venv/bin/python -m pytest -q -n "$(nproc)" \
        --dist loadfile --basetemp="$temp" --timeout=900 t "$@" || status=$?
    rm -rf "$temp"
    return "$status"
}

# NVIDIA's programs, for t/40-prebuilt; they don't run under sanitizers
fetch_prebuilt()
{
    [ "$build" != build ] || build/venv/bin/python t/bench/peer.py
}

# what drives a GPU, under ASan too, in a build of its own
run_gpu_asan()
{
    [ "$build" != build ] || sh t/gpu/asan.sh
}

must setup sh t/setup.sh
must build sh tools/build.sh "$build"
step rooms build/venv/bin/python t/check-rooms.py
step unit-build build_units
step unit run_units
step prebuilt fetch_prebuilt
step black-box run_black_box "$@"
step gpu-asan run_gpu_asan
if [ -n "${INF_FUZZ_SECONDS:-}" ]; then
    step fuzz sh t/fuzz.sh
fi
finish
