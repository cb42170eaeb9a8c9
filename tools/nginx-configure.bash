#!/bin/bash
# nginx-configure.bash - runs nginx's configure in the current directory, so
# that the module's binary signature is the program's: with the arguments that
# NGINX_PROGRAM, where it is set, says in its "nginx -V", else with those of
# Debian's own build where its conf_flags file is present, else with the usual
# set.
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

# Of the program's arguments not those that only say which other modules it has
# and where libraries lay on the machine that built it.  Of its compiler and
# linker options not those of the program alone, and not the level of
# _FORTIFY_SOURCE: ours is higher.
read_program()
{
    local arguments argument
    arguments=$("$NGINX_PROGRAM" -V 2>&1 | sed -n 's/^configure arguments: *//p')
    NGX_CONF_FLAGS=()

    # xargs takes quotes away, and runs none of the words
    while IFS= read -r argument; do
        case $argument in
        '' | *=dynamic | --add-module=* | --add-dynamic-module=*) ;;
        --with-openssl=* | --with-openssl-opt=* | --with-cc=* | --with-cpp=*) ;;
        --with-pcre=* | --with-pcre-opt=* | --with-zlib=*) ;;
        --with-zlib-opt=* | --with-zlib-asm=* | --with-libatomic=*) ;;
        --with-*perl* | --with-*xslt* | --with-*image_filter*) ;;
        --with-*geoip* | --with-google_perftools*) ;;
        --builddir=* | --with-cpu-opt=*) ;;
        --with-cc-opt=*) cc_opt="$(plain "${argument#*=}") $cc_opt" ;;
        --with-ld-opt=*) ld_opt="$(plain "${argument#*=}") $ld_opt" ;;
        *) NGX_CONF_FLAGS+=("$argument") ;;
        esac
    done < <(printf '%s\n' "$arguments" | xargs -n 1 printf '%s\n')

    # another compiler than the program's may warn of its headers
    cc_opt+=" -fPIC -Wno-error"
}

plain()
{
    local word words kept=
    read -ra words <<< "$1"
    for word in "${words[@]}"; do
        case $word in
        -pie | -fPIE | -fpie | -flto* | -specs=* | -ffile-prefix-map=*) ;;
        *_FORTIFY_SOURCE*) ;;
        *) kept+=" $word" ;;
        esac
    done
    printf '%s' "$kept"
}

if [ -n "${NGINX_PROGRAM:-}" ]; then
    read_program
elif [ -f conf_flags ]; then
    . ./conf_flags
elif grep -q with-http_v3_module auto/options; then
    NGX_CONF_FLAGS+=(--with-http_v3_module)
fi

./configure "${NGX_CONF_FLAGS[@]}" --with-cc-opt="$cc_opt" \
    --with-ld-opt="$ld_opt" --add-dynamic-module="$module_dir"
