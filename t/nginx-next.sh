#!/bin/sh
# nginx-next.sh - builds nginx of the next Debian from its source package,
# the module for it, and runs the black-box tests against both (not those of
# the launcher: it takes the module beside it, which is for the stock nginx).
#
#   sh t/nginx-next.sh [PYTEST-ARGUMENTS]

set -eu

cd "$(dirname "$0")/.."
root=$(pwd)
next=$root/build/nginx-next

sh t/setup.sh
sh tools/build.sh build

source=$(ls -d "$next"/nginx-*/src 2>/dev/null | head -1 || true)
if [ -z "$source" ]; then
    sh t/next-debian.sh source nginx "$next"
    tar -xf "$next"/nginx_*.orig.tar.gz -C "$next"
fi
source=$(dirname "$(ls -d "$next"/nginx-*/src | head -1)")

NGINX_BINARY=1 sh tools/nginx-module.sh "$next/build" "$source"

"$next/build/nginx-src/objs/nginx" -v
INF_NGINX=$next/build/nginx-src/objs/nginx \
INF_MODULE=$next/build/ngx_http_inference_module.so \
    build/venv/bin/python -m pytest -q t --ignore t/70-launcher "$@"
