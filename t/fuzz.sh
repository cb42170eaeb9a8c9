#!/bin/sh
# fuzz.sh - builds the fuzzers of t/fuzz with clang and runs each for
# INF_FUZZ_SECONDS (60), as many at a time as there are processors.  Findings
# of a fuzzer lie in build-fuzz/found.
#
#   sh t/fuzz.sh [NOUN...]
#
# With INF_FUZZ_KEEP=1 inputs that reach what no committed one does are added
# to t/fuzz/corpus/NOUN afterwards.

set -eu

cd "$(dirname "$0")/.."
root=$(pwd)
seconds=${INF_FUZZ_SECONDS:-60}
build=$root/build-fuzz

nouns=${*:-$(for f in t/fuzz/*.c; do basename "$f" .c; done)}
targets=
for noun in $nouns; do
    if [ ! -f "t/fuzz/$noun.c" ]; then
        echo "fuzz.sh: there is no fuzzer \"$noun\" in t/fuzz" >&2
        exit 2
    fi
    targets="$targets fuzz_$noun"
done

sh t/setup.sh
sh t/setup.sh fuzz

mkdir -p "$build/found"
# for nginx's headers, of which its configure makes a part
sh tools/nginx-module.sh "$build" > "$build/nginx.log" 2>&1 \
    || { cat "$build/nginx.log" >&2; exit 1; }
CC=clang CXX=clang++ cmake -G Ninja -S . -B "$build" -DINF_FUZZ=ON \
    > "$build/cmake.log" 2>&1 || { cat "$build/cmake.log" >&2; exit 1; }
ninja -C "$build" -j "$(nproc)" $targets > "$build/ninja.log" 2>&1 \
    || { cat "$build/ninja.log" >&2; exit 1; }

export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

fuzz_one()
{
    noun=$1
    corpus=$build/corpus-$noun
    mkdir -p "$corpus"
    seeds=
    [ ! -d "t/fuzz/corpus/$noun" ] || seeds=t/fuzz/corpus/$noun
    log=$build/$noun.log
    if "$build/fuzz_$noun" -max_total_time="$seconds" -timeout=10 \
        -rss_limit_mb=2048 -artifact_prefix="$build/found/$noun-" \
        -print_final_stats=1 "$corpus" $seeds > "$log" 2>&1
    then
        echo "fuzz: $noun, $seconds s:" \
            "$(grep -E 'number_of_executed_units' "$log")"
    else
        echo "fuzz: $noun"
        tail -40 "$log"
        return 1
    fi

    [ -n "${INF_FUZZ_KEEP:-}" ] || return 0
    mkdir -p "t/fuzz/corpus/$noun"
    "$build/fuzz_$noun" -merge=1 -use_counters=0 "t/fuzz/corpus/$noun" \
        "$corpus" >> "$log" 2>&1
}

# The fuzzers under way: PID:NOUN of each.
batch=
failed=

wait_batch()
{
    for one in $batch; do
        wait "${one%%:*}" || failed="$failed ${one#*:}"
    done
    batch=
}

for noun in $nouns; do
    fuzz_one "$noun" &
    batch="$batch $!:$noun"
    [ "$(echo $batch | wc -w)" -lt "$(nproc)" ] || wait_batch
done
wait_batch

if [ -n "$failed" ]; then
    echo "fuzz: FAILED:$failed (see build-fuzz/found)"
    exit 1
fi
