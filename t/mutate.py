#!/usr/bin/env python3
"""Mutates one room by rules and tells which mutants its tests catch.

    t/mutate.py ROOM [-n N] [--seed SEED] [--only ID...] [--plain]
                [--units | --list]

universalmutator changes single lines of the room's sources.  N random lines
are judged by a random mutant each, of those that compile and whose object
file, without debug information, differs from the original's.  First the room's
unit programs run, then those of rooms above that use it, then both under ASan,
where a leak is a failure; what passes them goes through the nearest black-box
directories.  A test that fails, crashes or exceeds its time catches the
mutant.

All of it happens in build-mutants/tree, a copy of the working tree, and tests
run in a sandbox: of the file system only that copy and an empty /tmp can be
written, there are no other processes and no network but a loopback.  A mutant
may remove what it finds or signal whom it meets, so there is no way without.

A mutant's ID and its place in the sample depend on the file, the line's text
and SEED alone, so the sample stays nearly the same while sources change.
"""

import argparse
import collections
import contextlib
import difflib
import fcntl
import fnmatch
import hashlib
import io
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "build-mutants"
TREE = WORK / "tree"
BUILD = TREE / "build"
NGINX = BUILD / "nginx-src"

RULES = ["universal.rules", "c_like.rules", "c.rules"]

CORE_ROOMS = ["base", "proto", "wire", "tensor", "model", "sched",
              "cache", "storage", "repository", "server", "abi", "service"]

# a room's unit programs as ctest names them; others: unit_ROOM_
UNITS = {"backends": "backend_", "ngx_module": ""}

# programs of rooms above that test this one as much as its own do
ABOVE = {
    "proto": "unit_(wire_re|server_(rest_request|core_config)|service_in)",
    "wire": "unit_service_(infer|intake|session)",
    "tensor": "unit_abi_",
    "model": "unit_(abi_|repository_(out_of_memory|instance_change))",
    "sched": "unit_cache_",
    "cache": "unit_abi_(cache_entry|local_cache)",
    "server": "unit_abi_",
    "abi": "unit_service_",
}

# the black-box directories nearest to a source: the first pattern counts
NEAREST = [
    ("core/cache/*", ["25-cache"]),
    ("core/storage/*s3*", ["24-s3"]),
    ("core/storage/*object*", ["24-s3"]),
    ("core/storage/cloud_credentials.c", ["24-s3"]),
    ("core/storage/*gs*", ["24-s3"]),
    ("core/storage/*azure*", ["24-s3"]),
    ("core/storage/service_as.c", ["24-s3"]),
    ("core/storage/access_token.c", ["24-s3"]),
    ("core/storage/jwt.c", ["24-s3"]),
    ("core/storage/*", ["22-repository"]),
    ("core/repository/agent*", ["34-agents"]),
    ("core/repository/*ensemble*", ["26-ensembles", "28-ensembles-run"]),
    ("core/repository/rate_check.c", ["52-rate-limit"]),
    ("core/repository/check.c", ["20-config"]),
    ("core/repository/*", ["22-repository"]),
    ("core/server/journal.c", ["60-crash"]),
    ("core/server/crash_page.c", ["60-crash"]),
    ("core/service/core_main.c", ["10-protocol", "60-crash"]),
    ("core/service/check_main.c", ["20-config"]),
    ("core/server/model_control.c", ["22-repository"]),
    ("core/abi/api_*", ["36-in-process", "32-conformance"]),
    ("core/server/rest_answer.c", ["10-protocol", "22-repository"]),
    ("core/server/*", ["10-protocol", "22-repository"]),
    ("core/service/*", ["10-protocol"]),
    ("core/abi/*cache*", ["25-cache"]),
    ("core/abi/repository_agent*", ["34-agents"]),
    ("core/abi/*", ["30-backends", "32-conformance", "34-bad-plugins"]),
    ("core/tensor/*", ["30-backends"]),
    ("core/model/*", ["20-config", "10-protocol"]),
    ("core/sched/*", ["50-batching", "54-sequences"]),
    ("core/*", ["10-protocol"]),
    ("backends/identity/*", ["30-backends"]),
    ("backends/*", ["30-backends", "50-batching/test_ragged.py"]),
    ("ngx_module/*_supervisor.c", ["ngx-fake", "60-crash", "22-repository"]),
    ("ngx_module/*_spawn.c", ["ngx-fake", "60-crash"]),
    ("ngx_module/*_environment.c", ["ngx-fake", "60-crash"]),
    ("ngx_module/*_core_log.c", ["ngx-fake", "10-protocol"]),
    ("ngx_module/*_keep.c", ["ngx-fake", "60-crash"]),
    ("ngx_module/*_zone.c", ["ngx-fake", "60-crash"]),
    ("ngx_module/*_channel.c", ["ngx-fake", "60-crash", "10-protocol"]),
    ("ngx_module/*_client.c", ["ngx-fake", "60-crash", "10-protocol"]),
    ("ngx_module/*_check.c", ["20-config", "00-build/test_directives.py"]),
    ("ngx_module/*_core_config.c", ["20-config", "22-repository",
                                    "00-build/test_directives.py"]),
    ("ngx_module/*_directives.c", ["20-config", "10-protocol",
                                   "00-build/test_directives.py"]),
    ("ngx_module/*_host_policy.c", ["20-config"]),
    ("ngx_module/*_options.c", ["20-config", "22-repository"]),
    ("ngx_module/*_control.c", ["10-protocol", "22-repository"]),
    ("ngx_module/*_rate_limit.c", ["52-rate-limit"]),
    ("ngx_module/*_response_cache.c", ["25-cache"]),
    ("ngx_module/*", ["10-protocol", "12-body", "14-request"]),
]

# $1: what can be written and where to run; the rest is the command
SANDBOX = """
set -e
tree=$1
shift
cd /
awk '$1 ~ "^/dev/" || $2 == "/" { print $2 }' /proc/self/mounts | sort -u |
    while read -r mount; do mount -o remount,bind,ro "$mount"; done
mount --bind "$tree" "$tree"
mount -o remount,bind,rw "$tree"
for folder in /tmp /dev/shm; do
    mount -t tmpfs -o size=2g,mode=1777 none $folder
done
ip link set lo up
cd "$tree"
ulimit -c 0
exec choom -n 1000 -- "$@"
"""


def run(command, cwd=TREE, timeout=None, **kw):
    """(exit status, output); the status is None when time was exceeded."""
    process = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True,
                               errors="replace", **kw)
    try:
        out, _ = process.communicate(timeout=timeout)
        return process.returncode, out
    except subprocess.TimeoutExpired:
        process.kill()              # unshare takes the whole sandbox along
        out, _ = process.communicate()
        return None, out


def sandboxed(command, seconds):
    return run(["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid",
                "--net", "--ipc", "--fork", "--kill-child", "--mount-proc",
                "sh", "-c", SANDBOX, "sh", TREE, *command], timeout=seconds,
               env=dict(os.environ, INFERENCE_CUDA_DRIVER="", INF_BUILD="build",
                        PYTHONDONTWRITEBYTECODE="1"))


def must(command, cwd=TREE):
    status, out = run(command, cwd)
    if status != 0:
        sys.exit(f"{shlex.join(map(str, command))}: {out[-6000:]}")
    return out


# ---- the copy of the tree

def lock_tree():
    WORK.mkdir(exist_ok=True)
    lock = open(WORK / "lock", "w", encoding="ascii")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(f"t/mutate.py: another run uses {TREE}")
    return lock


def write_if_changed(path, data):
    if not path.exists() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def copy_tree():
    """TREE becomes what the working tree holds; unchanged files keep time."""
    names = must(["git", "ls-files", "-z", "-co", "--exclude-standard"],
                 ROOT).split("\0")
    names = {n for n in names if n and (ROOT / n).is_file()}
    for name in names:
        write_if_changed(TREE / name, (ROOT / name).read_bytes())
        shutil.copymode(ROOT / name, TREE / name)
    for path in TREE.rglob("*"):
        inside = path.relative_to(TREE)
        if not inside.parts[0].startswith("build") and path.is_file() \
                and "__pycache__" not in inside.parts \
                and str(inside) not in names:
            path.unlink()
    BUILD.mkdir(exist_ok=True)
    for name in ("deps", "venv", "peer"):
        if not (BUILD / name).exists() and (ROOT / "build" / name).exists():
            (BUILD / name).symlink_to((ROOT / "build" / name).resolve())


def configure(build, *arguments):
    """Each time: ctest is to know the programs that are new.

    Without debug information a program is linked in half of the time.
    """
    launchers = [f"-DCMAKE_{language}_COMPILER_LAUNCHER=ccache"
                 for language in ("C", "CXX") if shutil.which("ccache")]
    must(["cmake", "-G", "Ninja", "-S", ".", "-B", build, *arguments,
          "-DCMAKE_EXE_LINKER_FLAGS=-Wl,-S",
          "-DCMAKE_SHARED_LINKER_FLAGS=-Wl,-S", *launchers])


def build_tree():
    configure("build")
    configure("build-asan", "-DINF_SANITIZE=address,undefined",
              "-DINF_NOPOOL=ON")
    must(["sh", "tools/build.sh", "build"])


# ---- mutants

def key(*words):
    """The key that orders mutants: the same for the same words."""
    return hashlib.sha256("\0".join(map(str, words)).encode()).hexdigest()


class Mutant:
    def __init__(self, seed, file, number, old, new, twin):
        self.file, self.number, self.old, self.new = file, number, old, new
        self.id = key(seed, file, old, new, twin)[:8]

    def __str__(self):
        return (f"{self.id} {self.file}:{self.number}\n"
                f"    - {self.old.strip()}\n    + {self.new.strip()}")

    def text(self):
        lines = (TREE / self.file).read_text().splitlines(keepends=True)
        lines[self.number - 1] = self.new
        return "".join(lines)


def sources(room):
    where = f"core/{room}" if room in CORE_ROOMS else room
    return sorted(str(p.relative_to(TREE))
                  for p in (TREE / where).rglob("*.c"))


def mutants_of(file, seed):
    """The mutants of each line, in a random order: [(key, mutants)]."""
    from universalmutator import mutator
    lines = (TREE / file).read_text().splitlines(keepends=True)
    with contextlib.redirect_stdout(io.StringIO()):
        found = mutator.mutants_regexp(lines, RULES, ignorePatterns=[])
    # lines of the same text are told apart by their order
    twins, seen = [], collections.Counter()
    for line in lines:
        twins.append(seen[line])
        seen[line] += 1
    made = collections.defaultdict(list)
    for number, new, *_ in found:
        # asserts hold their line's number: no line may be added
        new = new.rstrip("\n").replace("\n", " ") + "\n"
        made[number].append(Mutant(seed, file, number, lines[number - 1], new,
                                   twins[number - 1]))
    return [(key(seed, file, lines[n - 1], twins[n - 1]),
             sorted(mutants, key=lambda m: m.id))
            for n, mutants in made.items()]


# ---- one mutant's object file

class Objects:
    def __init__(self):
        commands = json.loads((BUILD / "compile_commands.json").read_text())
        self.made = {}
        for entry in commands:
            words = shlex.split(entry["command"])
            file = os.path.relpath(entry["file"], TREE)
            if "_counted" not in entry["command"]:
                self.made.setdefault(file, words[words.index("-o") + 1])

    def compile(self, file):
        """The object's hash; None when the file does not compile."""
        if file.startswith("ngx_module/"):
            name = f"objs/addon/{file[:-2]}.o"
            object_ = NGINX / name
            command = ["make", "-s", "-C", NGINX, "-f", "objs/Makefile", name]
        else:
            object_ = BUILD / self.made[file]
            command = ["ninja", "-C", BUILD, self.made[file]]
        if run(command)[0] != 0:
            return None
        plain = WORK / "plain.o"
        must(["objcopy", "--strip-debug", str(object_), str(plain)])
        return hashlib.sha256(plain.read_bytes()).hexdigest()


@contextlib.contextmanager
def mutated(mutant):
    path = TREE / mutant.file
    original = path.read_text()
    path.write_text(mutant.text())
    try:
        yield
    finally:
        path.write_text(original)


# ---- judges

class Units:
    """A room's unit programs in one build directory."""

    def __init__(self, build, pattern):
        self.build, self.seconds = build, 0
        must(["ninja", "-C", build, "build.ninja"])     # tests may be new
        listed = must(["ctest", "--test-dir", build, "-N", "-R",
                       f"^{pattern}"])
        self.names = re.findall(r"Test +#\d+: (\S+)", listed)
        while (caught := self.judge(self.names, 600)) != "":
            name = caught.split()[1] if caught else "to build"
            if name not in self.names:
                sys.exit(f"without a mutant fails: {caught or name}")
            print(f"left out, it fails without a mutant: {caught}", flush=True)
            self.names.remove(name)

    def judge(self, names, limit):
        targets = [re.sub("^backend_", "fake_", name) for name in names]
        if run(["ninja", "-C", self.build, *targets])[0] != 0:
            return None
        _, out = sandboxed(
            ["ctest", "--test-dir", self.build, "-R", f"^({'|'.join(names)})$",
             "--stop-on-failure", "--timeout", str(limit)], None)
        times = re.findall(r"Passed +([\d.]+) sec", out)
        self.seconds = max([self.seconds, *map(float, times)])
        if "100% tests passed" in out:
            return ""
        failed = re.search(r"Test +#\d+: (\S+) [. ]*[\w ]*\*\*\*(\w+)", out)
        return f"{self.build} " + (" ".join(failed.groups()) if failed
                                   else out[-300:])

    def catch(self, file):
        """The programs with names most like the file's run first."""
        noun = pathlib.Path(file).stem
        names = sorted(self.names, reverse=True, key=lambda name:
                       difflib.SequenceMatcher(None, noun, name).ratio())
        limit = max(60, int(5 * self.seconds))
        for some in names[:3], names[3:]:
            caught = self.judge(some, limit) if some else ""
            if caught != "":
                return caught
        return ""


class Judges:
    """Each returns who caught the mutant; "" for nobody, None: no build."""

    def __init__(self, room, plain):
        own = UNITS.get(room, f"unit_{room}_")
        above = ABOVE.get(room)
        both = f"({own}|{above})" if above else own
        self.units = [Units(build, pattern) for build, pattern in (
            ("build", own), ("build", above),
            ("build-asan", None if plain else both)) if pattern]
        self.folders = {}           # seconds and failures without a mutant

    def catch_by_units(self, file):
        for units in self.units:
            caught = units.catch(file)
            if caught != "":
                return caught
        return ""

    def pytest(self, folder, deselect, seconds):
        """(test that failed, "" or "too long"; seconds it took)."""
        began = os.times().elapsed
        status, out = sandboxed(
            ["build/venv/bin/python", "-m", "pytest", "-q", "-x",
             f"t/{folder}",
             *(f"--deselect={t.removeprefix('t/')}" for t in deselect)],
            seconds)
        took = os.times().elapsed - began
        failed = re.search(r"^(?:FAILED|ERROR) (t/.+?)(?: - .*)?$", out, re.M)
        if status is None:
            return f"{folder}: too long", took
        if status != 0:
            return failed.group(1) if failed else out[-300:], took
        return "", took

    def learn(self, folder):
        """The run without a mutant, and its failures."""
        fails = []
        while True:
            failed, took = self.pytest(folder, fails, 1200)
            if not failed:
                break
            if not failed.startswith(f"t/{folder}") or len(fails) == 5:
                sys.exit(f"without a mutant fails: {failed}")
            print(f"left out, it fails without a mutant: {failed}", flush=True)
            fails.append(failed)
        self.folders[folder] = took, fails

    def catch_by_folders(self, file):
        folders = next(f for pattern, f in NEAREST
                       if fnmatch.fnmatch(file, pattern))
        if run(["sh", "tools/build.sh", "build"])[0] != 0:
            return None
        for folder in folders:
            took, fails = self.folders[folder]
            caught, _ = self.pytest(folder, fails, 60 + 4 * took)
            if caught:
                return caught
        return ""

    def prepare_folders(self, file):
        for folder in next(f for pattern, f in NEAREST
                           if fnmatch.fnmatch(file, pattern)):
            if folder not in self.folders:
                must(["sh", "tools/build.sh", "build"])
                self.learn(folder)


def judge(judges, mutant, units_only):
    with mutated(mutant):
        caught = judges.catch_by_units(mutant.file)
    if caught != "" or units_only:
        return caught
    judges.prepare_folders(mutant.file)
    with mutated(mutant):
        return judges.catch_by_folders(mutant.file)


def sample(room, seed, only):
    """One mutant of each line that has one to judge, in a random order."""
    objects, originals = Objects(), {}
    lines = [line for file in sources(room) for line in mutants_of(file, seed)]
    for _, mutants in sorted(lines, key=lambda line: line[0]):
        for mutant in mutants:
            if only and mutant.id not in only:
                continue
            if mutant.file not in originals:
                originals[mutant.file] = objects.compile(mutant.file)
            with mutated(mutant):
                made = objects.compile(mutant.file)
            if made not in (None, originals[mutant.file]):
                yield mutant
                break


def main():
    parser = argparse.ArgumentParser(description="see t/README.md")
    parser.add_argument("room", choices=[*CORE_ROOMS, "backends",
                                         "ngx_module"])
    parser.add_argument("-n", type=int, default=30)
    parser.add_argument("--seed", type=int, default=14)
    parser.add_argument("--only", nargs="+", metavar="ID",
                        help="these mutants of the sample")
    parser.add_argument("--plain", action="store_true",
                        help="nothing under ASan: faster, blind to leaks")
    parser.add_argument("--units", action="store_true",
                        help="no black-box tests")
    parser.add_argument("--list", action="store_true",
                        help="print the sample and judge nothing")
    asked = parser.parse_args()
    for tool in ("unshare", "setpriv", "choom", "ip", "objcopy"):
        if shutil.which(tool) is None:
            sys.exit(f"t/mutate.py: {tool} not found (Debian: util-linux, "
                     "iproute2, binutils)")
    os.environ.update(CCACHE_BASEDIR=str(TREE), CCACHE_NOHASHDIR="1")

    lock = lock_tree()
    copy_tree()
    build_tree()
    judges = None if asked.list else Judges(asked.room, asked.plain)
    count = len(asked.only) if asked.only else asked.n
    survivors, judged = [], 0
    for mutant in sample(asked.room, asked.seed, asked.only):
        caught = "nobody, listed" if asked.list \
            else judge(judges, mutant, asked.units)
        if caught is None:
            continue                # it does not link
        if not caught:
            survivors.append(mutant)
        print(f"caught by {caught}:" if caught else "SURVIVED:", mutant,
              flush=True)
        judged += 1
        if judged == count:
            break

    lock.close()
    print(f"\n{asked.room}: {judged} mutants, {judged - len(survivors)} "
          f"caught, {len(survivors)} survived")
    for mutant in survivors:
        print(mutant)


if __name__ == "__main__":
    main()
