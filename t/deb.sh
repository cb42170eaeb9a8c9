#!/bin/sh
# deb.sh - builds the Debian packages in a root of each release with nothing but
# their build dependencies, installs them with apt in a clean root of the same
# release, and asks a model there (deb-try.sh).
#
#   sh t/deb.sh [bookworm] [trixie]
#   sh t/deb.sh --base RELEASE      a root of it alone: build/debian/RELEASE.tar
#
# Root, mmdebstrap and network are needed, and some minutes a release.  Roots
# are in build/debian: NAME-build stays for the next run.  Mounts, processes
# and ports are of namespaces that end with each step.

set -eu

cd "$(dirname "$0")/.."
root=$(pwd)
place=$root/build/debian
mirror=$(sh t/next-debian.sh mirror)
proxy=$(apt-config shell proxy Acquire::http::Proxy)
eval "$proxy"

main()
{
    if [ "$(id -u)" != 0 ] || ! command -v mmdebstrap > /dev/null; then
        echo "deb.sh: needs root and the package mmdebstrap" >&2
        exit 1
    fi
    mkdir -p "$place"
    if [ "${1:-}" = --base ]; then
        release=$2
        make_base
        return
    fi
    [ $# -gt 0 ] || set -- bookworm trixie
    for release in "$@"; do
        make_base
        build_packages
        try_packages
    done
}

# ---- roots

make_base()
{
    base=$place/$release.tar
    if [ ! -f "$base" ]; then
        echo "$release: a root"
        mmdebstrap -q --variant=minbase --include=ca-certificates \
            ${proxy:+--aptopt="Acquire::http::Proxy \"$proxy\""} \
            "$release" "$place/new.tar" "$mirror"
        mv "$place/new.tar" "$base"
    fi
}

# unpack NAME: the base, in place/NAME
unpack()
{
    mkdir -p "$place/$1"
    tar -C "$place/$1" --exclude='./dev/*' -xf "$base"
    # names are resolved as here, and no package starts a service
    cp /etc/resolv.conf /etc/hosts "$place/$1/etc/"
    printf '#!/bin/sh\nexit 101\n' > "$place/$1/usr/sbin/policy-rc.d"
    chmod 755 "$place/$1/usr/sbin/policy-rc.d"
}

# inside NAME UNSHARE-OPTIONS COMMAND: as root of that root
inside()
{
    unshare --mount --pid --fork --kill-child $2 sh -euc '
        mount --make-rprivate /
        mount --rbind /dev "$1/dev"
        mount -t proc proc "$1/proc"
        [ "$2" = "" ] || ip link set lo up
        exec chroot "$1" env -i PATH="$PATH" HOME=/root LC_ALL=C.UTF-8 \
            DEBIAN_FRONTEND=noninteractive sh -euc "$3"
    ' sh "$place/$1" "$2" "$3"
}

# ---- packages

build_packages()
{
    name=$release-build
    [ -d "$place/$name" ] || unpack "$name"
    mkdir -p "$place/$name/src/nginx-inference"
    rm -f "$place/$name"/src/*.deb
    git ls-files -co --exclude-standard \
        | tar -cf - -T - | tar -C "$place/$name/src/nginx-inference" -xf -

    echo "$release: packages"
    inside "$name" "" '
        cd /src/nginx-inference
        apt-get -qq update
        apt-get -qq install -y --no-install-recommends build-essential
        apt-get -qq build-dep -y --no-install-recommends ./
        # where Debian has it, the backend is built, too
        apt-get -qq install -y --no-install-recommends libonnxruntime-dev \
            2> /dev/null || true
        dpkg-buildpackage -b -us -uc
    ' > "$place/$name.log" 2>&1 || { tail -40 "$place/$name.log" >&2; exit 1; }
    ls "$place/$name"/src/*.deb | grep -v dbgsym
}

# ---- trial

try_packages()
{
    name=$release-try
    rm -rf "${place:?}/$name"
    unpack "$name"
    mkdir "$place/$name/debs"
    for deb in "$place/$release-build"/src/*.deb; do
        case $deb in
        *-dbgsym_*) ;;
        *) cp "$deb" "$place/$name/debs/" ;;
        esac
    done
    cp t/deb-try.sh "$place/$name/"

    echo "$release: installation"
    inside "$name" "" '
        apt-get -qq update
        apt-get -qq install -y --no-install-recommends /debs/*.deb python3 \
            curl logrotate procps systemd
    ' > "$place/$name.log" 2>&1 || { tail -40 "$place/$name.log" >&2; exit 1; }
    inside "$name" --net 'sh /deb-try.sh'
    rm -rf "${place:?}/$name"
}

main "$@"
