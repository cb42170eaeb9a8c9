#!/bin/sh
# fuzz.sh - builds the fuzzers of t/fuzz with clang and runs each for
# INF_FUZZ_SECONDS (60).  What a fuzzer finds lies in build-fuzz/found.
#
#   sh t/fuzz.sh [NOUN...]

set -eu

cd "$(dirname "$0")/.."
root=$(pwd)
seconds=${INF_FUZZ_SECONDS:-60}
build=$root/build-fuzz

sh t/setup.sh
sh t/setup.sh fuzz

nouns=${*:-$(for f in t/fuzz/*.c; do basename "$f" .c; done)}
targets=
for noun in $nouns; do
    targets="$targets fuzz_$noun"
done

mkdir -p "$build/found"
CC=clang CXX=clang++ cmake -G Ninja -S . -B "$build" -DINF_FUZZ=ON \
    > "$build/cmake.log" 2>&1 || { cat "$build/cmake.log" >&2; exit 1; }
ninja -C "$build" -j "$(nproc)" $targets > "$build/ninja.log" 2>&1 \
    || { cat "$build/ninja.log" >&2; exit 1; }

failed=
for noun in $nouns; do
    corpus=$build/corpus-$noun
    mkdir -p "$corpus"
    seeds=
    [ ! -d "t/fuzz/corpus/$noun" ] || seeds=t/fuzz/corpus/$noun
    echo "fuzz: $noun, $seconds s"
    log=$build/$noun.log
    if "$build/fuzz_$noun" -max_total_time="$seconds" -timeout=10 \
        -rss_limit_mb=2048 -artifact_prefix="$build/found/$noun-" \
        -print_final_stats=1 "$corpus" $seeds > "$log" 2>&1
    then
        grep -E 'number_of_executed_units' "$log"
    else
        tail -40 "$log"
        failed="$failed $noun"
    fi
done

if [ -n "$failed" ]; then
    echo "fuzz: FAILED:$failed (see build-fuzz/found)"
    exit 1
fi
