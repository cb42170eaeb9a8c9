#!/bin/sh
# forwarding-library.sh - a tiny library that stands for the core under
#                         another name.
#
#   sh tools/forwarding-library.sh SONAME OUTPUT [CORE]
#
# Repaired Python wheels rename the libraries they carry: a program out of one
# asks for libtritonserver-<hash>.so.  OUTPUT is a library of that SONAME which
# asks for libtritonserver.so (CORE, build/libtritonserver.so unless given) and
# looks for it beside itself.  Plug-ins that the core loads need no such file:
# the core makes it in memory (core/abi/forwarding.h).

set -eu

if [ $# -lt 2 ] || [ $# -gt 3 ]; then
    echo "usage: forwarding-library.sh SONAME OUTPUT [CORE]" >&2
    exit 2
fi

soname=$1
output=$2
core=${3:-$(dirname "$0")/../build/libtritonserver.so}

case $soname in
    ''|*[!A-Za-z0-9._+-]*)
        echo "forwarding-library.sh: \"$soname\" is no library's name" >&2
        exit 2
esac

if [ ! -f "$core" ]; then
    echo "forwarding-library.sh: $core is not there" >&2
    exit 1
fi

: | ${CC:-cc} -shared -fPIC -nostdlib -x c - -x none \
    -Wl,-soname,"$soname" -Wl,--no-as-needed "$core" \
    -Wl,-z,noexecstack -Wl,-rpath,'$ORIGIN' -o "$output"
