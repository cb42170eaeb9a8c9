#!/bin/sh
# setup.sh - installs what building and testing need.  Idempotent: a second
# run ends at the stamp.  Debian packages come from the machine's own apt
# sources, Python packages from PyPI into build/venv, NVIDIA's perf_analyzer
# from the package that has its program into build/deps/perf-analyzer, KServe's
# models from its package into build/deps/kserve, ONNX Runtime's C headers from
# the package of the next Debian (unpacked under build/deps, the system's apt
# configuration is not touched), PyTorch's headers and the libraries that a CPU
# needs from its package into build/deps/pytorch.
#
#   sh t/setup.sh            build and test
#   sh t/setup.sh examples   what examples/run.sh needs: no runtimes of
#                            backends that none of its models runs on
#   sh t/setup.sh fuzz       also what clang's fuzzers are linked to
#   sh t/setup.sh --print    the Debian packages, one a line

set -eu

cd "$(dirname "$0")/.."
root=$(pwd)
deps=$root/build/deps
what=${1:-base}

packages="ca-certificates gcc g++ make cmake ninja-build pkg-config
    nginx nginx-dev
    protobuf-c-compiler libprotobuf-c-dev libjansson-dev zlib1g-dev
    libexpat1-dev libcurl4-openssl-dev libssl-dev libpng-dev libjemalloc2
    python3 python3-venv curl procps"

# of tests, of backends python and pytorch and of NVIDIA's prebuilt ones
more_packages="git libnginx-mod-http-js libarchive-dev libcmocka-dev
    libpython3.11 python3-dev libb64-0d wrk nghttp2-client clang
    chromium-headless-shell"

# Another nginx than Debian's is there.
if [ -n "${NGINX_PROGRAM:-}" ]; then
    packages=$(printf '%s\n' $packages | grep -v nginx)
    more_packages=$(printf '%s\n' $more_packages | grep -v nginx)
fi

main()
{
    case $what in
    base) packages="$packages $more_packages" ;;
    examples) ;;
    fuzz) packages="$packages $more_packages libclang-rt-14-dev" ;;
    --print) printf '%s\n' $packages $more_packages; exit 0 ;;
    *) echo "setup.sh: unknown argument \"$what\"" >&2; exit 1 ;;
    esac

    stamp=$root/build/.setup-$what
    key=$({ echo "$root"; cat t/setup.sh t/next-debian.sh t/requirements.txt \
        t/requirements-runtimes.txt; } | sha256sum)
    if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$key" ]; then
        exit 0
    fi

    mkdir -p "$deps"
    install_packages
    make_venv
    lay_onnxruntime
    if [ $what = base ]; then
        # the last tritonclient with the program; the venv has a newer one
        lay_packages perf-analyzer perf_analyzer \
            tritonclient==2.41.1 nvidia-cuda-runtime-cu12==12.9.79
        # of which the tests read the generated models alone
        lay_packages kserve "KServe's models" kserve==0.21.0
        install_runtimes
        lay_openvino
        lay_treelite
        lay_pytorch
    fi
    echo "$key" > "$stamp"
}

# ---- Debian packages

missing_packages()
{
    for p in $packages; do
        case $(dpkg-query -W -f='${Status}' "$p" 2>/dev/null || true) in
        *" ok installed") ;;
        *) printf '%s ' "$p" ;;
        esac
    done
}

install_packages()
{
    missing=$(missing_packages)
    if [ -z "$missing" ]; then
        return
    fi

    sudo=
    if [ "$(id -u)" != 0 ]; then
        if ! command -v sudo > /dev/null; then
            echo "setup.sh: as root, please: apt-get install $missing" >&2
            exit 1
        fi
        sudo=sudo
    fi

    echo "setup: Debian packages: $missing"
    keep_services_stopped
    export DEBIAN_FRONTEND=noninteractive
    $sudo apt-get -qq update
    $sudo apt-get -qq install -y --no-install-recommends $missing \
        < /dev/null > "$root/build/setup-apt.log" 2>&1 \
        || { tail -30 "$root/build/setup-apt.log" >&2; exit 1; }
    let_services_start
}

# The nginx package would start a server on port 80 while it is installed;
# only its program is wanted here.
keep_services_stopped()
{
    policy=/usr/sbin/policy-rc.d
    if [ -e $policy ]; then
        policy=
        return
    fi
    trap let_services_start EXIT
    printf '#!/bin/sh\nexit 101\n' | $sudo tee $policy > /dev/null
    $sudo chmod 755 $policy
}

let_services_start()
{
    if [ -n "$policy" ]; then
        $sudo rm -f "$policy"
        policy=
    fi
}

# ---- Python packages

# Debian's own interpreter first: another python3 on the PATH may lack venv.
find_python()
{
    for python in /usr/bin/python3 python3; do
        if "$python" -c 'import venv, ensurepip' 2>/dev/null; then
            return
        fi
    done
    echo "setup.sh: no python3 with the venv module" >&2
    exit 1
}

make_venv()
{
    find_python
    venv=$root/build/venv
    if ! "$venv/bin/python" -c 'import sys' 2>/dev/null; then
        echo "setup: virtual environment build/venv"
        rm -rf "$venv"
        "$python" -m venv "$venv"
    fi
    if [ $what = examples ]; then       # its library is all that they need
        set -- --no-deps "$(grep '^onnxruntime==' t/requirements.txt)"
    else
        set -- -r t/requirements.txt
    fi
    "$venv/bin/python" -m pip install --disable-pip-version-check -q "$@"
}

install_runtimes()
{
    "$venv/bin/python" -m pip install --disable-pip-version-check -q \
        -r t/requirements-runtimes.txt
}

# ---- packages that are not for the venv: DIRECTORY WHAT REQUIREMENT...

lay_packages()
{
    dir=$deps/$1
    if [ ! -d "$dir" ]; then
        echo "setup: $2"
        shift 2
        rm -rf "$dir.new"
        "$venv/bin/python" -m pip install --disable-pip-version-check -q \
            --no-deps --only-binary=:all: --target "$dir.new" "$@"
        mv "$dir.new" "$dir"
    fi
}

# Licences go where the libraries go: RUNTIME FILE...; a runtime that the
# system has brings its own.
lay_licences()
{
    licences=$deps/$1/licences
    rm -rf "$licences"
    shift
    for file in "$@"; do
        [ -f "$file" ] || continue
        mkdir -p "$licences"
        cp "$file" "$licences/"
    done
}

# ---- ONNX Runtime: deps/onnxruntime/{include,lib}

lay_onnxruntime()
{
    ort=$deps/onnxruntime
    mkdir -p "$ort/lib"

    if [ -f /usr/include/onnxruntime/onnxruntime_c_api.h ]; then
        ln -sfn /usr/include/onnxruntime "$ort/include"
        lib=$(ls /usr/lib/*/libonnxruntime.so.* | sort -V | tail -1)
    else
        fetch_onnxruntime_headers
        lib=$(ls "$venv"/lib/python3*/site-packages/onnxruntime/capi/libonnxruntime.so.1.* \
            | sort -V | tail -1)
    fi

    ln -sfn "$lib" "$ort/lib/libonnxruntime.so.1"
    ln -sfn libonnxruntime.so.1 "$ort/lib/libonnxruntime.so"
    lay_licences onnxruntime "${lib%/capi/*}"/LICENSE \
        "${lib%/capi/*}"/ThirdPartyNotices.txt
    printf 'ONNXRUNTIME_INCLUDE=%s\nONNXRUNTIME_LIB=%s\n' \
        "$ort/include" "$ort/lib/libonnxruntime.so.1" > "$deps/onnxruntime.env"
}

fetch_onnxruntime_headers()
{
    dir=$deps/onnxruntime-headers
    if [ ! -f "$dir/usr/include/onnxruntime/onnxruntime_c_api.h" ]; then
        echo "setup: ONNX Runtime's C headers"
        rm -rf "$dir"
        mkdir -p "$dir"
        sh t/next-debian.sh download libonnxruntime-dev "$dir"
        dpkg -x "$dir"/libonnxruntime-dev_*.deb "$dir"
    fi
    ln -sfn "$dir/usr/include/onnxruntime" "$ort/include"
}

# ---- OpenVINO: deps/openvino/{include,lib}

lay_openvino()
{
    vino=$deps/openvino
    package=$(ls -d "$venv"/lib/python3*/site-packages/openvino)
    rm -rf "$vino/lib"
    mkdir -p "$vino/lib"

    ln -sfn "$package/include" "$vino/include"
    ln -sf "$package"/libs/lib*.so* "$vino/lib/"
    ln -sfn "$(basename "$package"/libs/libopenvino_c.so.*)" \
        "$vino/lib/libopenvino_c.so"
    lay_licences openvino "$package"-*.dist-info/licenses/LICENSE \
        "$package"-*.dist-info/licenses/licensing/*
}

# ---- treelite: deps/treelite/lib, with the libgomp of its package

lay_treelite()
{
    site=$(dirname "$(ls -d "$venv"/lib/python3*/site-packages/treelite)")
    rm -rf "$deps/treelite"
    mkdir -p "$deps/treelite/lib"
    ln -sf "$site/treelite/lib/libtreelite.so" \
        "$site"/treelite.libs/libgomp*.so* "$deps/treelite/lib/"
    lay_licences treelite "$site"/treelite-*.dist-info/METADATA
}

# ---- PyTorch: deps/pytorch/{include,lib}, of which a CPU needs a third

# The package is made for CUDA, whose libraries stay away; libtorch_cpu.so
# itself needs two small ones of them.
lay_pytorch()
{
    torch=$deps/pytorch
    if [ -d "$torch/licences" ]; then
        return
    fi
    echo "setup: PyTorch"
    rm -rf "$torch.new"
    mkdir -p "$torch.new"
    "$venv/bin/python" -m pip download --disable-pip-version-check -q \
        --no-cache-dir --no-deps --only-binary=:all: -d "$torch.new/wheels" \
        torch==2.15.0 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85
    "$venv/bin/python" - "$torch.new" <<'EOF'
import pathlib
import sys
import zipfile

WANTED = {"libtorch_cpu.so", "libc10.so", "libgomp.so.1", "libcudart.so.13",
          "libcupti.so.13"}
root = pathlib.Path(sys.argv[1])

for wheel in (root / "wheels").iterdir():
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            path = pathlib.PurePosixPath(entry.filename)
            if path.name in WANTED:
                entry.filename = f"lib/{path.name}"
            elif path.parts[1:2] == ("licenses",) and not entry.is_dir():
                package = path.parts[0].split("-")[0]
                entry.filename = "/".join(("licences", package,
                                           *path.parts[2:]))
            elif path.parts[:2] == ("torch", "include") and path.suffix:
                entry.filename = str(path.relative_to("torch"))
            else:
                continue
            archive.extract(entry, root)
EOF
    rm -r "$torch.new/wheels"
    mv "$torch.new" "$torch"
}

main
