#!/bin/sh
# next-debian.sh - fetches one package of the Debian release after this
# machine's, with an apt state of its own under build/deps/next-debian.
#
#   sh t/next-debian.sh download PACKAGE DIR     the .deb
#   sh t/next-debian.sh source PACKAGE DIR       the original source, without
#                                                Debian's part
#   sh t/next-debian.sh mirror                   where this machine's release
#                                                comes from

set -eu

cd "$(dirname "$0")/.."
state=$(pwd)/build/deps/next-debian
verb=$1
package=${2:-}
dir=${3:-}

codename=$(. /etc/os-release; echo "${VERSION_CODENAME:-sid}")
case $codename in
bookworm) next=trixie ;;
trixie) next=forky ;;
*) next=sid ;;
esac

# The mirror this machine's own release comes from.
mirror()
{
    awk -v suite="$codename" '
        $1 == "deb" {
            for (i = 2; i < NF; i++) {
                if ($(i) ~ /:\// && $(i + 1) == suite) { print $(i); exit }
            }
        }
        $1 == "URIs:" { uri = $2 }
        $1 == "Suites:" {
            for (i = 2; i <= NF; i++) { if ($(i) == suite) { hit = 1 } }
        }
        NF == 0 { if (hit && uri != "") { exit } uri = ""; hit = 0 }
        END { if (hit && uri != "") { print uri } }
    ' "$1"
}

for list in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
    [ -f "$list" ] || continue
    uri=$(mirror "$list")
    [ -z "$uri" ] || break
done
if [ -z "${uri:-}" ]; then
    echo "next-debian.sh: no apt source for $codename on this machine" >&2
    exit 1
fi

if [ "$verb" = mirror ]; then
    echo "$uri"
    exit 0
fi

keyring=/usr/share/keyrings/debian-archive-keyring.gpg
signed=
[ ! -f $keyring ] || signed="[signed-by=$keyring] "

mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
: > "$state/status"
printf 'deb %s%s %s main\ndeb-src %s%s %s main\n' \
    "$signed" "$uri" $next "$signed" "$uri" $next > "$state/sources.list"

private="-o Dir::Etc::sourcelist=$state/sources.list
    -o Dir::Etc::sourceparts=/dev/null
    -o Dir::State::lists=$state/lists
    -o Dir::State::status=$state/status
    -o Dir::Cache=$state/cache
    -o APT::Sandbox::User=root"

# Fresh enough when less than a day old.
if [ -z "$(find "$state/updated" -mtime -1 2>/dev/null)" ]; then
    apt-get $private -qq update
    : > "$state/updated"
fi

mkdir -p "$dir"
cd "$dir"
case $verb in
download) apt-get $private -qq download "$package" ;;
source) apt-get $private -qq --download-only --tar-only source "$package" ;;
*) echo "next-debian.sh: unknown verb \"$verb\"" >&2; exit 1 ;;
esac
