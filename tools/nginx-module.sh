#!/bin/sh
# nginx-module.sh - builds ngx_http_inference_module.so with nginx's own
# configure, in a copy of nginx's sources.
#
#   sh tools/nginx-module.sh BUILD [NGINX-SOURCE]
#
# BUILD is where the module goes; NGINX-SOURCE defaults to NGINX_SRC, then to
# what Debian's nginx-dev installs.  With NGINX_PROGRAM=PATH the module is for
# that very program: configured as its "nginx -V" says, with sources of its
# version, and loaded by it at the end.  With INF_SANITIZE=address,undefined the
# module is built so; with NGINX_BINARY=1 the nginx program too
# (BUILD/nginx-src/objs/nginx); with INF_POINTS=1 a second module for tests, in
# BUILD/points.

set -eu

cd "$(dirname "$0")/.."
root=$(pwd)
. tools/hardening.sh
mkdir -p "$1"
build=$(cd "$1" && pwd)
source=${2:-${NGINX_SRC:-/usr/share/nginx/src}}
copy=$build/nginx-src
module=ngx_http_inference_module.so
sanitize=${INF_SANITIZE:-}

main()
{
    check_source
    key=$({
        echo "$source" "$sanitize" "${NGINX_BINARY:-}"
        [ -z "${NGINX_PROGRAM:-}" ] || "$NGINX_PROGRAM" -V 2>&1
        cat config tools/nginx-*sh tools/hardening.sh core/proto/*.proto \
            ngx_module/status.html \
            "$source/src/core/nginx.h"
        ls ngx_module/*.c core/wire/*.c core/proto/*.c core/base/*.c
    } | sha256sum)

    if [ ! -f "$copy/.key" ] || [ "$(cat "$copy/.key")" != "$key" ]; then
        configure
        echo "$key" > "$copy/.key"
    fi

    forget_stale_objects

    targets=modules
    [ -z "${NGINX_BINARY:-}" ] || targets="binary modules"
    (cd "$copy" && make -s -f objs/Makefile -j"$(nproc)" $targets)

    [ -z "${NGINX_PROGRAM:-}" ] || try_module
    lay "$copy" "$build"
    [ -z "${INF_POINTS:-}" ] || make_points
}

fail()
{
    printf 'nginx-module.sh: %s\n' "$*" >&2
    exit 1
}

# The sources are there, and the program, where one is named, was built from
# their version.
check_source()
{
    [ -f "$source/src/core/nginx.h" ] || fail "no nginx sources in" \
        "\"$source\": install Debian's nginx-dev, or unpack" \
        "nginx-VERSION.tar.gz and name the directory: NGINX_SRC=DIR"
    source=$(cd "$source" && pwd)
    [ -n "${NGINX_PROGRAM:-}" ] || return 0

    said=$("$NGINX_PROGRAM" -V 2>&1) || fail "cannot run \"$NGINX_PROGRAM -V\""
    program=$(printf '%s\n' "$said" \
        | sed -n 's|^nginx version: *[^/ ]*/\([0-9.]*\).*|\1|p')
    version=$(sed -n 's/^#define NGINX_VERSION *"\(.*\)"/\1/p' \
        "$source/src/core/nginx.h")
    [ "$program" = "$version" ] || fail "\"$NGINX_PROGRAM\" is nginx $program, the" \
        "sources in \"$source\" are nginx $version: unpack" \
        "nginx-$program.tar.gz and name the directory: NGINX_SRC=DIR"
}

# Whether the program takes the module for its own.
try_module()
{
    conf=$copy/try.conf
    mkdir -p "$copy/logs"
    # the user that nginx was built for may not be there
    [ "$(id -u)" != 0 ] || user="user root;"
    printf 'load_module "%s";\nerror_log stderr;\npid "%s";\n%s events { }\n' \
        "$copy/objs/$module" "$copy/try.pid" "${user:-}" > "$conf"
    "$NGINX_PROGRAM" -t -q -p "$copy" -c "$conf" \
        || fail "\"$NGINX_PROGRAM\" does not load the module (see above)"
}

# A new file under the old name: a running nginx keeps its old one.
lay()
{
    if ! cmp -s "$1/objs/$module" "$2/$module"; then
        cp "$1/objs/$module" "$2/$module.new"
        mv "$2/$module.new" "$2/$module"
    fi
}

# The module with the numbered points of core/base/points.h: only files that
# have some are compiled again.
make_points()
{
    points=$build/points/nginx-src
    if [ "$points/objs/$module" -nt "$copy/objs/$module" ]; then
        return
    fi

    rm -rf "$points"
    mkdir -p "$build/points"
    cp -a "$copy" "$points"
    (
        cd "$points"
        sed -i 's/^CFLAGS *=/& -DINF_POINTS/' objs/Makefile
        for source in $(cd "$root" \
            && grep -l INF_POINT ngx_module/*.c core/wire/*.c core/base/*.c)
        do
            rm -f "objs/addon/${source%.c}.o" \
                objs/addon/"$(basename "$(dirname "$source")")"/"$(basename "${source%.c}")".o
        done
        rm -f "objs/$module"
        make -s -f objs/Makefile -j"$(nproc)" modules
    )
    lay "$points" "$build/points"
}

configure()
{
    echo "configuring nginx $(sed -n 's/#define NGINX_VERSION *//p' \
        "$source/src/core/nginx.h") for the module"
    rm -rf "$copy"
    cp -R "$source" "$copy"

    cc_opt="-O2 -g -fno-omit-frame-pointer"
    if [ -n "$sanitize" ]; then
        cc_opt="$cc_opt -fsanitize=$sanitize -fno-sanitize-recover=all"
        ld_opt="-fsanitize=$sanitize"
    else
        cc_opt="$cc_opt $harden_cc"
        ld_opt=$harden_ld
    fi

    (
        cd "$copy"
        ASAN_OPTIONS=detect_leaks=0 bash "$root/tools/nginx-configure.bash" \
            "$root" "$cc_opt" "$ld_opt" > configure.log 2>&1
    ) || { tail -20 "$copy/configure.log" >&2; exit 1; }
}

# nginx's makefile does not follow the headers of an added module.
forget_stale_objects()
{
    built=$copy/objs/$module
    [ -f "$built" ] || return 0
    newer=$(find ngx_module core/wire core/proto core/base core/include \
        -name '*.h' -newer "$built")
    if [ -n "$newer" ]; then
        rm -rf "$built" "$copy/objs/addon"/*/*.o "$copy"/objs/*inference*.o
    fi
}

main
