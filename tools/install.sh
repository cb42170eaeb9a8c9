#!/bin/sh
# install.sh - copies what was built to where nginx and a backend author look.
#
#   sh tools/install.sh BUILD PREFIX [DESTDIR]
#
# DESTDIR is put before PREFIX where files are written, never where one names
# another.
#
#   PREFIX/bin/inference-server
#   PREFIX/lib/nginx-inference/   module, core, library, backends, agents
#   PREFIX/include/triton/core/   the C ABI's headers
#   PREFIX/include/nginx-inference/   what a model.so of backend cuda includes
#   PREFIX/share/nginx-inference/conf.d/   snippets to include
#   PREFIX/share/nginx-inference/examples/   models, clients, a backend to copy
#   PREFIX/share/nginx/modules-available/mod-http-inference.conf
#                                 loads the module; to link into modules-enabled
#   PREFIX/share/doc/nginx-inference/   documents, licences of all that is here
#   PREFIX/lib/systemd/system/    the core as a service, for external=, and what
#                                 nginx's own service needs with the module
#
# Nothing is built and nothing is fetched; a file that is missing is named.

set -eu

cd "$(dirname "$0")/.."
build=$1
prefix=${3:-}$2
lib=$prefix/lib/nginx-inference
share=$prefix/share/nginx-inference
doc=$prefix/share/doc/nginx-inference

for file in inference-server inference-core libtritonserver.so \
    ngx_http_inference_module.so
do
    if [ ! -f "$build/$file" ]; then
        echo "install.sh: $build/$file is not there: build first (make build)" \
            >&2
        exit 1
    fi
done

# A copy of a directory, without what git or a run has left there.
copy_tree()
{
    [ -d "$1" ] || return 0
    find -H "$1" -name __pycache__ -prune -o -type f \
        ! -name .gitignore ! -name '*.o' ! -name '*.so' -print \
        | while IFS= read -r file
    do
        case $file:$(head -c 2 "$file" | tr -d '\0') in
        */.gitkeep:*) install -d "$(dirname "$2/${file#"$1"/}")" ;;
        *:'#!') install -D -m 755 "$file" "$2/${file#"$1"/}" ;;
        *) install -D -m 644 "$file" "$2/${file#"$1"/}" ;;
        esac
    done
}

install -d "$prefix/bin" "$lib/backends" "$prefix/include/triton/core" \
    "$prefix/include/nginx-inference" "$prefix/share/nginx-inference/conf.d"
install -m 755 "$build/inference-server" "$prefix/bin/"
install -m 755 "$build/inference-core" "$lib/"
install -m 644 "$build/ngx_http_inference_module.so" \
    "$build/libtritonserver.so" "$lib/"
install -m 644 core/include/triton/core/*.h "$prefix/include/triton/core/"
install -m 644 backends/cuda/gpu_model.h "$prefix/include/nginx-inference/"

available=$prefix/share/nginx/modules-available
install -d "$available"
echo "load_module $2/lib/nginx-inference/ngx_http_inference_module.so;" \
    > "$available/mod-http-inference.conf"

for snippet in conf.d/*.conf conf.d/*.pbtxt conf.d/*.service; do
    case $snippet in
        *.service) file=$prefix/lib/systemd/system/$(basename "$snippet") ;;
        *) file=$prefix/share/nginx-inference/$snippet ;;
    esac
    install -d "$(dirname "$file")"
    sed -E "s#/usr/(lib|share)/nginx-inference#$2/\1/nginx-inference#g" \
        "$snippet" > "$file"
done

install -D -m 644 packaging/nginx.service.d/inference.conf \
    "$prefix/lib/systemd/system/nginx.service.d/inference.conf"

for dir in "$build"/backends/*/; do
    name=$(basename "$dir")
    library=$dir/libtriton_$name.so
    [ -f "$library" ] || continue
    install -d "$lib/backends/$name"
    install -m 644 "$library" "$lib/backends/$name/"
done

# Files that backend python puts into the interpreters of models.
if [ -f "$build/backends/python/_native.abi3.so" ]; then
    install -m 644 "$build"/backends/python/*.py "$lib/backends/python/"
    install -m 755 "$build"/backends/python/_native.abi3.so \
        "$lib/backends/python/"
fi

for dir in "$build"/agents/*/; do
    name=$(basename "$dir")
    library=$dir/libtritonrepoagent_$name.so
    [ -f "$library" ] || continue
    install -d "$lib/agents/$name"
    install -m 644 "$library" "$lib/agents/$name/"
done

# ONNX Runtime's library stays beside the backend that runs on it, unless it is
# the system's.
if [ -d "$lib/backends/onnxruntime" ] \
    && [ -e build/deps/onnxruntime/lib/libonnxruntime.so.1 ]
then
    install -m 644 build/deps/onnxruntime/lib/libonnxruntime.so.1 \
        "$lib/backends/onnxruntime/"
fi

# OpenVINO's with its plugins likewise.
if [ -e build/deps/openvino/lib ] && [ -d "$lib/backends/openvino" ]; then
    install -m 644 build/deps/openvino/lib/lib*.so* "$lib/backends/openvino/"
fi

# treelite's as well, with its libgomp; "fil" is another name of the backend.
if [ -d "$lib/backends/trees" ]; then
    for library in build/deps/treelite/lib/lib*.so*; do
        [ ! -e "$library" ] || install -m 644 "$library" "$lib/backends/trees/"
    done
    ln -sf ../trees/libtriton_trees.so "$lib/backends/fil/libtriton_fil.so"
fi

# PyTorch's likewise, and the empty libtorch.so of a build without CUDA.
if [ -e build/deps/pytorch/lib ] && [ -d "$lib/backends/pytorch" ]; then
    install -m 644 "$build"/backends/pytorch/lib*.so* \
        "$build/backends/pytorch/model.py" "$lib/backends/pytorch/"
fi

for runtime in onnxruntime openvino treelite pytorch; do
    copy_tree build/deps/$runtime/licences "$doc/licences/$runtime"
done
copy_tree docs "$doc/docs"
install -m 644 README.md LICENSE "$doc/"

# run.sh builds, which belongs to the sources.
copy_tree examples "$share/examples"
rm "$share/examples/run.sh"
