#!/bin/sh
# build.sh - builds everything into one directory: core, backends and unit
# tests by cmake, the module by nginx's configure, the launcher by cc.  BUILD's
# points/ has core and module once more, with the points of core/base/points.h.
#
#   sh tools/build.sh [BUILD]
#
# The directory's name chooses the sanitizers: build (none), build-asan,
# build-tsan.  A sanitized core is tested under an nginx that is the stock
# program: with ASan the module is instrumented too (its runtime is preloaded),
# with TSan the module is plain.

set -eu

cd "$(dirname "$0")/.."
. tools/hardening.sh
build=${1:-build}
jobs=$(nproc)
args=
module_sanitize=
launcher_flags="$harden_cc $harden_ld -fPIE -pie"

case $(basename "$build") in
build-asan)
    args="-DINF_SANITIZE=address,undefined -DINF_NOPOOL=ON"
    module_sanitize=address,undefined
    launcher_flags="-fsanitize=address,undefined" ;;
build-tsan)
    args="-DINF_SANITIZE=thread" ;;
esac

[ -f "$build/inference-core" ] || echo "building into $build"
mkdir -p "$build"
cmake -G Ninja -S . -B "$build" $args > "$build/cmake.log" 2>&1 \
    || { cat "$build/cmake.log" >&2; exit 1; }
ninja -C "$build" -j "$jobs" > "$build/ninja.log" 2>&1 \
    || { cat "$build/ninja.log" >&2; exit 1; }

INF_POINTS=1 INF_SANITIZE=$module_sanitize sh tools/nginx-module.sh "$build"

launcher="$(echo tools/*.c) core/proto/core_options.c
    core/proto/number_read.c core/proto/number_powers.c core/base/error.c
    core/base/host_setting.c core/base/log.c core/base/log_stream.c"
if [ -n "$(find tools/*.[ch] core/proto/core_options.[ch] \
        core/proto/number* core/base/*.[ch] tools/hardening.sh \
        -newer "$build/inference-server" 2>/dev/null || echo missing)" ]; then
    cc -std=gnu17 -D_GNU_SOURCE -O2 -g -Wall -Wextra -Wconversion -Werror \
        $launcher_flags -I. -o "$build/inference-server" $launcher
fi
