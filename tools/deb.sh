#!/bin/sh
# deb.sh - Debian packages of what is built.
#
#   sh tools/deb.sh [BUILD [PACKAGE...]]
#
# They go to BUILD/deb.  Without PACKAGE: all whose runtimes were there at the
# build.  debhelper works in a directory of links, so that nothing of it gets
# into the sources.

set -eu

cd "$(dirname "$0")/.."
root=$(pwd)
build=$(cd "${1:-build}" && pwd)
[ $# -eq 0 ] || shift

rm -rf "$build/deb"
stage=$build/deb/work
mkdir -p "$stage"
cp -R debian "$stage/"
for entry in *; do
    case $entry in
    debian | build*) ;;
    *) ln -s "$root/$entry" "$stage/$entry" ;;
    esac
done
ln -s "$root/build" "$stage/build"

only=
for package in "$@"; do
    only="$only -p$package"
done

cd "$stage"
dpkg-checkbuilddeps
export DEB_RULES_REQUIRES_ROOT=no INF_BUILT="$build" DH_OPTIONS="$only"
debian/rules binary OUTPUT="$build/deb" > "$build/deb/log" 2>&1 \
    || { tail -40 "$build/deb/log" >&2; exit 1; }
rm -rf "$stage"
ls "$build"/deb/*.deb
