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
#   PREFIX/lib/systemd/system/    the core as a service, for external=

set -eu

cd "$(dirname "$0")/.."
build=$1
prefix=${3:-}$2
lib=$prefix/lib/nginx-inference

install -d "$prefix/bin" "$lib/backends" "$prefix/include/triton/core" \
    "$prefix/include/nginx-inference" "$prefix/share/nginx-inference/conf.d"
install -m 755 "$build/inference-server" "$prefix/bin/"
install -m 755 "$build/inference-core" "$lib/"
install -m 644 "$build/ngx_http_inference_module.so" \
    "$build/libtritonserver.so" "$lib/"
install -m 644 core/include/triton/core/*.h "$prefix/include/triton/core/"
install -m 644 backends/cuda/gpu_model.h "$prefix/include/nginx-inference/"
for snippet in conf.d/*.conf conf.d/*.pbtxt conf.d/*.service; do
    case $snippet in
        *.service) file=$prefix/lib/systemd/system/$(basename "$snippet") ;;
        *) file=$prefix/share/nginx-inference/$snippet ;;
    esac
    install -d "$(dirname "$file")"
    sed -E "s#/usr/(lib|share)/nginx-inference#$2/\1/nginx-inference#g" \
        "$snippet" > "$file"
done

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

# ONNX Runtime's library stays beside the backend that runs on it.
if [ -d "$lib/backends/onnxruntime" ]; then
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
