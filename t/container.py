#!/usr/bin/env python3
"""Carries out packaging/container/Containerfile without a container engine:
its stages become roots of Debian, its RUN lines run there, and its command
serves the examples as the user that it names.

    python3 t/container.py

Needs root, mmdebstrap and network (t/deb.sh makes the base's tar).  An
instruction that this file does not know fails.
"""

import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLACE = ROOT / "build/debian"
RECIPE = ROOT / "packaging/container/Containerfile"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
BASES = {"debian:12-slim": "bookworm", "debian:13-slim": "trixie"}

# In namespaces of its own: $1 is the root, $2 the user, $3 the directory, $4
# the command, $5 the certificates that pip trusts.
INSIDE = """
mount --make-rprivate /
mount --rbind /dev "$1/dev"
mount -t proc proc "$1/proc"
ip link set lo up 2> /dev/null || true
exec chroot --userspec="$2" "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    PIP_CERT="$5" sh -euc 'cd "$0"; eval "$1"' "$3" "$4"
"""

# The image's command is started, asked, and ended as an engine does it.
TRIAL = """
%(command)s &
pid=$!
tries=0
until python3 - <<'END'
import urllib.request
urllib.request.urlopen("http://127.0.0.1:8000/v2/health/ready")
END
do
    tries=$((tries + 1))
    [ $tries -lt 300 ] && kill -0 $pid
    sleep 0.2
done 2> /dev/null
python3 /usr/share/nginx-inference/examples/digits/send.py --digit 7 \
    --url 127.0.0.1:8000 | grep seven
kill -%(signal)s $pid
wait $pid
"""


def instructions():
    """(word, rest) of each line of the recipe."""
    text = RECIPE.read_text().replace("\\\n", " ")
    return [tuple(line.split(None, 1)) for line in text.splitlines()
            if line.strip() and not line.startswith("#")]


def inside(root, command, user="0:0", directory="/", net=False):
    subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--kill-child",
         *(["--net"] if net else []), "sh", "-euc", INSIDE, "sh", root, user,
         directory, command, CERTIFICATES],
        check=True, stdin=subprocess.DEVNULL)


def new_stage(rest, number):
    """The root of "FROM image [AS name]", and the name."""
    image, *name = rest.split()
    release = BASES[image]
    subprocess.run(["sh", ROOT / "t/deb.sh", "--base", release], check=True)
    root = PLACE / f"image-{number}"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    subprocess.run(["tar", "-C", root, "--exclude=./dev/*", "-xf",
                    PLACE / f"{release}.tar"], check=True)
    # names are resolved and certificates trusted as on this machine
    for file in ("/etc/resolv.conf", "/etc/hosts", CERTIFICATES):
        shutil.copy(file, root / file[1:])
    policy = root / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    return root, name[1] if name else str(number)


def copy(stages, root, rest):
    """COPY [--from=STAGE] SOURCE TARGET; the context is what git lists."""
    *options, source, target = rest.split()
    to = root / target.lstrip("/")
    if options:
        stage = stages[options[0].removeprefix("--from=")]
        shutil.copytree(stage / source.lstrip("/"), to)
        return
    assert source == ".", f"COPY {rest}"
    to.mkdir(parents=True)
    files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"],
                           cwd=ROOT, check=True, capture_output=True).stdout
    pack = subprocess.Popen(["tar", "-cf", "-", "-T", "-"], cwd=ROOT,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    unpack = subprocess.Popen(["tar", "-C", to, "-xf", "-"],
                              stdin=pack.stdout)
    pack.stdin.write(files)
    pack.stdin.close()
    assert (pack.wait(), unpack.wait()) == (0, 0)


def carry_out():
    """The last stage's root, and what the image says of itself."""
    stages, said = {}, {}
    root = None
    for word, rest in instructions():
        print(f"{word} {rest}", flush=True)
        if word == "FROM":
            root, name = new_stage(rest, len(stages))
            stages[name] = root
            said = {"WORKDIR": "/", "USER": "0", "STOPSIGNAL": "SIGTERM"}
        elif word == "COPY":
            copy(stages, root, rest)
        elif word == "RUN":
            inside(root, rest, said["USER"] + ":0", said["WORKDIR"])
        elif word in ("WORKDIR", "USER", "EXPOSE", "STOPSIGNAL", "CMD"):
            said[word] = rest
        else:
            sys.exit(f"container.py: {word} is not known")
    return root, said


def main():
    if os.getuid() != 0:
        sys.exit("container.py: needs root")
    root, said = carry_out()
    shutil.copytree(root / "usr/share/nginx-inference/examples/models",
                    root / "models")
    inside(root, TRIAL % {
        "command": shlex.join(json.loads(said["CMD"])),
        "signal": said["STOPSIGNAL"].removeprefix("SIG"),
    }, f"{said['USER']}:{said['USER']}", said["WORKDIR"], net=True)
    print("the image's command has answered, and ended with 0")


main()
