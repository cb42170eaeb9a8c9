#!/bin/sh
# pack.sh - puts into DIR what a machine with a GPU and without a network needs
# beside CUDA's toolkit, Python, gcc, cmake and ninja; there, DIR/run.sh is the
# one command.
#
#   sh t/gpu/pack.sh DIR
#
# INF_BUILD   build (default): it is completed first
# GPU_PYTHON  3.12: the version of Python there
# GPU_WHEELS  a directory with wheels, taken in place of PyPI; none: no wheels
# GPU_LIMIT   60: MiB that DIR and a checkout of the repository have together
#
# DIR gets the sources, what was built of them here (x86-64, against this
# machine's C library, which may be older than the one there and not newer),
# nginx and wrk, the shared libraries that these need but for the C library's
# own, the headers to build core and backends once more, and wheels, the needed
# ones first, as many as fit.  MANIFEST says what is in and what was left out.

set -eu

cd "$(dirname "$0")/../.."
PATH=$PATH:/usr/sbin
build=${INF_BUILD:-build}
python=${GPU_PYTHON:-3.12}
limit=$((${GPU_LIMIT:-60} * 1048576))

main()
{
    if [ $# != 1 ]; then
        echo "usage: sh t/gpu/pack.sh DIR" >&2
        exit 1
    fi

    rm -rf "$1"
    mkdir -p "$1"
    pack=$(cd "$1" && pwd)
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT

    lay_sources
    lay_build
    lay_libraries
    cp t/gpu/run.sh "$pack/run.sh"
    {
        echo "commit $(git rev-parse HEAD 2>/dev/null || echo unknown)"
        echo "built on $(. /etc/os-release; echo "$PRETTY_NAME"), $(uname -m)"
        "$work/bin/nginx" -v 2>&1
        [ ! -e "$work/left" ] || cat "$work/left"
    } > "$pack/MANIFEST"
    lay_wheels
    echo "packed: $(du -sk "$pack" | cut -f1) KiB in $pack"
    grep 'left out' "$pack/MANIFEST" || true
}

# ---- sources: as in the working tree, without what git ignores

lay_sources()
{
    if git rev-parse --git-dir > /dev/null 2>&1; then
        git ls-files --cached --others --exclude-standard
    else
        find . -path './build*' -prune -o -type f -print
    fi > "$work/files"
    tar -cf "$work/sources.tar" -T "$work/files"
    repository=$(stat -c %s "$work/sources.tar")
    xz -T0 -2 -c "$work/sources.tar" > "$pack/sources.tar.xz"
}

# ---- what is built, without symbols for debuggers

lay_build()
{
    cmake --build "$build" --target gpu > "$build/ninja-gpu.log" 2>&1 \
        || { cat "$build/ninja-gpu.log" >&2; exit 1; }
    mkdir -p "$work/build"
    (
        cd "$build"
        for file in inference-core inference-server libtritonserver.so \
            ngx_http_inference_module.so gpu_memory gpu_bare gpu_core gen/* \
            backends/*/libtriton_*.so backends/python/*.py \
            backends/python/_native.abi3.so t-cuda/*.so \
            t-cuda/backends/*/*.so t-backends/*/*.so
        do
            [ ! -e "$file" ] || cp -a --parents "$file" "$work/build"
        done
        # links to what was fetched
        for file in backends/trees/libtreelite.so backends/trees/libgomp*.so*
        do
            [ ! -e "$file" ] || cp -L --parents "$file" "$work/build"
        done
    )
    find "$work/build" -type f ! -path '*/gen/*' ! -name '*.py' \
        -exec strip --strip-debug {} +
    tar -C "$work" -cf - build | xz -T0 -2 > "$pack/build.tar.xz"
}

# ---- programs, and the libraries that the machine may lack

lay_libraries()
{
    mkdir -p "$work/bin" "$work/lib" "$work/include"
    for program in "${INF_NGINX:-nginx}" wrk; do
        path=$(command -v "$program" || true)
        [ -z "$path" ] || cp -L "$path" "$work/bin/"
    done
    if [ ! -x "$work/bin/nginx" ]; then
        mv "$work/bin/$(basename "${INF_NGINX:-nginx}")" "$work/bin/nginx"
    fi

    find "$work/bin" "$work/build" -type f \
        \( -perm -u+x -o -name '*.so' \) -exec ldd {} + 2>/dev/null \
        | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u > "$work/needed"
    while read -r library; do
        case $(basename "$library") in
        libc.so.*|libm.so.*|libdl.so.*|librt.so.*|libpthread.so.*|ld-linux*) ;;
        libresolv.so.*|libonnxruntime*|libtritonserver*|libfake-*) ;;
        libicu*) echo "left out: $(basename "$library") (10 MiB for backend" \
            "python's libarchive; not tested where the machine has none)" \
            >> "$work/left" ;;
        *) cp -L "$library" "$work/lib/" ;;
        esac
    done < "$work/needed"
    strip --strip-debug "$work"/lib/* "$work"/bin/* 2>/dev/null || true
    lay_headers
    tar -C "$work" -cf - bin lib include | xz -T0 -2 > "$pack/root.tar.xz"
}

# of the libraries that core, backends and t/gpu include
lay_headers()
{
    arch=/usr/include/$(gcc -print-multiarch)
    for header in jansson.h jansson_config.h expat.h expat_external.h \
        expat_config.h zlib.h zconf.h protobuf-c cmocka.h curl openssl
    do
        for from in /usr/include "$arch"; do
            [ ! -e "$from/$header" ] || cp -RL "$from/$header" "$work/include/"
        done
    done
}

# ---- wheels, one after the other while there is room

lay_wheels()
{
    mkdir -p "$pack/wheels"
    if [ "${GPU_WHEELS-pypi}" = none ]; then
        echo "left out: all wheels, as asked" >> "$pack/MANIFEST"
        return
    fi

    sed '/^#/d' t/gpu/wheels.txt > "$work/wheels"
    while read -r wheel; do
        rm -rf "$work/one"
        mkdir "$work/one"
        if ! fetch_wheel "$wheel"; then
            echo "left out: $wheel (it could not be fetched)" \
                >> "$pack/MANIFEST"
            continue
        fi
        now=$(du -sb "$pack" | cut -f1)
        size=$(du -sb "$work/one" | cut -f1)
        if [ $((repository + now + size)) -gt $limit ]; then
            echo "left out: $wheel ($((size / 1024)) KiB, no room)" \
                >> "$pack/MANIFEST"
        else
            mv "$work"/one/*.whl "$pack/wheels/"
            echo "wheel $wheel" >> "$pack/MANIFEST"
        fi
    done < "$work/wheels"
}

fetch_wheel()
{
    platforms=
    for p in 2_28 2_27 2_24 2_17 2_5; do
        platforms="$platforms --platform manylinux_${p}_x86_64"
    done
    from=
    if [ -n "${GPU_WHEELS:-}" ]; then
        from="--no-index --find-links $GPU_WHEELS"
    fi
    build/venv/bin/python -m pip download -q --disable-pip-version-check \
        --no-deps --only-binary=:all: --implementation cp \
        --python-version "$python" $platforms \
        --platform manylinux2014_x86_64 $from -d "$work/one" "$1" \
        > "$work/pip.log" 2>&1
}

main "$@"
