#!/bin/bash
# nginx-configure.bash - runs nginx's configure in the current directory with
# the flags of Debian's own build where its conf_flags file is present (the
# module's binary signature must match), else with the usual set.
#
#   bash tools/nginx-configure.bash MODULE-DIR CC-OPT LD-OPT

set -eu

module_dir=$1
cc_opt=$2
ld_opt=$3

NGX_CONF_FLAGS=(
    --with-compat --with-debug --with-pcre-jit --with-threads
    --with-http_ssl_module --with-http_v2_module --with-http_realip_module
    --with-http_auth_request_module
)
if [ -f conf_flags ]; then
    . ./conf_flags
elif grep -q with-http_v3_module auto/options; then
    NGX_CONF_FLAGS+=(--with-http_v3_module)
fi

./configure "${NGX_CONF_FLAGS[@]}" --with-cc-opt="$cc_opt" \
    --with-ld-opt="$ld_opt" --add-dynamic-module="$module_dir"
