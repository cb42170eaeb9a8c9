#!/usr/bin/env python3
"""The cost of models that come and go, and of many of them.

neighbour  Latency of model A, asked at a steady rate, while model B (200 MB
           of files, which its backend reads) is loaded and unloaded in a loop
           beside it, and while it isn't: interleaved rounds, p50 and p99 of
           all their requests.  Target: p99 at most 10 % worse.  "reader" is a
           third kind of round: another process that does nothing but read the
           same files into memory at the same time: what the machine itself
           makes of such neighbours, which have the priority of requests.
           "apart": the same once more where nginx is kept to one half of the
           CPUs and `inference_host_policy loading` names the other, so that
           what is left is what a load does to requests, not how the kernel
           places threads.  The server is in our session: what the kernel
           shares out between sessions, no client elsewhere would meet.  A
           round during which other processes used the machine is thrown away,
           up to PATIENCE (120) seconds.
cycles     Resident memory of the core after 100 to 10,000 loads and unloads
           of one model.  Target: flat.
start      150 small models: seconds from the start of the program until the
           server is ready, beside Triton's with the same models (and another
           build's: BASE=DIR, its build directory), in interleaved rounds: idle,
           and with a process that spins for each CPU, all in one session.
           Target: at most 1.2 times Triton's.
many       1,000 small models: start, index, one look of poll mode (CPU of its
           thread), `nginx -t`.  Targets: 10 s, 20 ms, 50 ms, 1 s.

    python t/bench/models.py [neighbour] [cycles] [start] [many]

QUICK=1: fewer rounds, 1,000 cycles.  RATE=200: requests per second to A.
Results also go to build/bench-models.json.
"""

import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import peer                                                 # noqa: E402
from lib import backends, models, process                   # noqa: E402
from lib.server import ROOT, Server                         # noqa: E402
from lib.wire import Wire, tensor                           # noqa: E402

QUICK = bool(os.environ.get("QUICK"))
RATE = int(os.environ.get("RATE", "200"))
ROUNDS = 4 if QUICK else 12
SECONDS = 1 if QUICK else 3
PATIENCE = int(os.environ.get("PATIENCE", "120"))
QUIET = 0.1         # CPUs that others may use
PARTS = "health metadata config infer repository"
EXPLICIT = "    inference_model_control explicit;\n"
ONE = {"inputs": [tensor("IN", "FP32", [4], [1, 2, 3, 4])]}
READER = """
import sys
while True:
    held = []
    for path in sys.argv[1:]:
        with open(path, "rb", buffering=0) as f:
            held.append(f.read())
    del held
"""
LOOP = """
import http.client, sys
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
while True:
    for verb in "load", "unload":
        connection.request("POST", f"/v2/repository/models/b/{verb}", b"")
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            sys.exit(f"{verb} b: {answer.status} {text}")
"""


def call(server, verb, name):
    answer = server.post(f"/v2/repository/models/{name}/{verb}", b"")
    if answer.status != 200:
        raise RuntimeError(f"{verb} {name}: {answer}")


# ---- neighbour

def ask_at_a_rate(port, seconds):
    """Sorted latencies in us; one that comes late doesn't shift the next."""
    found = []
    with Wire(port) as connection:
        connection.infer("a", ONE)
        begin = time.perf_counter()
        for i in range(int(seconds * RATE)):
            due = begin + i / RATE
            while (left := due - time.perf_counter()) > 0:
                time.sleep(left)
            start = time.perf_counter()
            if connection.infer("a", ONE).status != 200:
                raise RuntimeError("model a gave no answer")
            found.append((time.perf_counter() - start) * 1e6)
    return sorted(found)


class Background:
    """A Python process beside us that runs until the end."""

    def __init__(self, text, *args):
        self.command = [sys.executable, "-c", text, *map(str, args)]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, env=dict(
            os.environ, PYTHONPATH=str(ROOT / "t")))
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def busy_seconds():
    """Of all CPUs together, since the start of the machine."""
    with open("/proc/stat", encoding="ascii") as f:
        fields = [int(x) for x in f.readline().split()[1:]]
    return (sum(fields) - fields[3] - fields[4]) / process.TICK


def own_seconds(pids):
    spent = os.times()
    return process.cpu_seconds(pids) + spent.user + spent.system \
        + spent.children_user + spent.children_system


class Others:
    """How many CPUs other processes used meanwhile."""

    def __init__(self, server):
        self.pids = server.processes()

    def __enter__(self):
        self.start = time.monotonic()
        self.before = busy_seconds() - own_seconds(self.pids)
        return self

    def __exit__(self, *_):
        used = busy_seconds() - own_seconds(self.pids) - self.before
        self.cpus = used / (time.monotonic() - self.start)


def percentile(values, p):
    return values[min(len(values) - 1, int(len(values) * p))]


def neighbour():
    def fill(folder):
        models.identity(folder, "a", [("IN", "FP32", [-1])])
        models.identity(folder, "b", [("IN", "FP32", [-1])],
                        backend="weights")
        for i in range(4):
            (folder / "b" / "1" / f"part{i}").write_bytes(
                os.urandom(1 << 20) * 50)

    result = {"rate": RATE}
    cpus = sorted(os.sched_getaffinity(0))
    half = len(cpus) // 2
    result.update(beside(fill, "", cpus))
    if half > 0:
        os.sched_setaffinity(0, cpus[:half])    # and so nginx, and we
        result.update({f"apart {k}": v for k, v in beside(
            fill, "    inference_host_policy loading cpu-cores="
            f"{','.join(map(str, cpus[half:]))};\n", cpus[half:]).items()})
        os.sched_setaffinity(0, cpus)
    return result


def beside(fill, directives, cpus):
    with Server(fill, parts=PARTS, http=EXPLICIT + directives
                + "    inference_load_model a;\n"
                f"    inference_backends {backends.build('weights')};\n",
                session=False) as server:
        files = sorted((server.models / "b" / "1").iterdir())
        call(server, "load", "b")               # they are in the page cache
        call(server, "unload", "b")
        ask_at_a_rate(server.port, 1)
        return side_by_side(server, files, cpus)


def side_by_side(server, files, cpus):
    kinds = {"alone": None, "load": Background(LOOP, server.port),
             "reader": Background(READER, *files)}
    rounds, noise = [], []
    loads = server.log_text().count("model=b version=1 is unloaded")
    end = time.monotonic() + PATIENCE
    while sum(n < QUIET for n in noise) < ROUNDS and time.monotonic() < end:
        found = {}
        with Others(server) as others:
            for kind, other in kinds.items():
                if other is None:
                    found[kind] = ask_at_a_rate(server.port, SECONDS)
                    continue
                with other:
                    os.sched_setaffinity(other.process.pid, cpus)
                    found[kind] = ask_at_a_rate(server.port, SECONDS)
                    if other.process.poll() is not None:
                        raise RuntimeError(f"{kind} has ended")
        rounds.append(found)
        noise.append(others.cpus)
    quiet = sorted(range(len(noise)), key=lambda i: noise[i])[:ROUNDS]
    loads = server.log_text().count("model=b version=1 is unloaded") - loads
    result = {"rounds": len(rounds), "loads": loads,
              "others' CPUs": round(max(noise[i] for i in quiet), 2)}
    pooled = {kind: sorted(us for i in quiet for us in rounds[i][kind])
              for kind in kinds}
    for kind, values in pooled.items():
        for name, p in (("p50", 0.5), ("p99", 0.99)):
            result[f"{kind} {name} us"] = round(percentile(values, p), 1)
            if kind != "alone":
                result[f"{kind} {name} ratio"] = round(
                    percentile(values, p) / percentile(pooled["alone"], p), 3)
    return result


# ---- cycles

def resident(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * process.PAGE


def cycles():
    marks = (100, 500, 1000) if QUICK else (100, 1000, 5000, 10000)
    result = {}
    with Server(lambda f: models.identity(f, "a", [("IN", "FP32", [-1])]),
                parts=PARTS, http=EXPLICIT, log_level="warn") as server:
        core = server.core()
        start = time.monotonic()
        for i in range(1, marks[-1] + 1):
            call(server, "load", "a")
            call(server, "unload", "a")
            if i in marks:
                time.sleep(0.5)                 # it is finalized
                result[f"{i} cycles MiB"] = round(
                    resident(core) / (1 << 20), 2)
        result["ms per cycle"] = round(
            (time.monotonic() - start) / marks[-1] * 1e3, 2)
    return result


# ---- start

def seconds_until_ready(folder, base):
    """base: a build directory; None: this build's."""
    builds = {} if base is None else {"core": base / "inference-core",
                                      "backends": base / "backends"}
    server = Server(folder, parts=PARTS, log_level="warn", session=False,
                    **builds)
    if base is not None:
        server.write_config(module=base / "ngx_http_inference_module.so")
    begin = time.monotonic()
    server.start(seconds=60)
    seconds = time.monotonic() - begin
    server.stop(check=False)
    return seconds


def peer_seconds_until_ready(repository, folder):
    begin = time.monotonic()
    triton = peer.Peer(repository, folder, session=False, step=0.02)
    seconds = time.monotonic() - begin
    triton.stop()
    return seconds


def start():
    base = os.environ.get("BASE")
    cpus = len(os.sched_getaffinity(0))
    peer.install()
    result = {}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        repository = folder / "models"
        repository.mkdir()
        for i in range(150):
            models.identity(repository, f"m{i}", [("IN", "FP32", [-1])])
        for kind in "idle", "busy":
            found = {}
            with contextlib.ExitStack() as stack:
                for _ in range(cpus if kind == "busy" else 0):
                    stack.enter_context(Background("while True: pass"))
                for i in range(3 if QUICK else 9):
                    own = folder / f"{kind}{i}"
                    own.mkdir()
                    found.setdefault("ours", []).append(
                        seconds_until_ready(repository, None))
                    found.setdefault("Triton", []).append(
                        peer_seconds_until_ready(repository, own))
                    if base is not None:
                        found.setdefault("base", []).append(
                            seconds_until_ready(repository,
                                                pathlib.Path(base)))
            for name, values in found.items():
                result[f"{kind} {name} s"] = round(
                    statistics.median(values), 2)
                result[f"{kind} {name} range"] = \
                    f"{min(values):.2f} .. {max(values):.2f}"
            result[f"{kind} ratio"] = round(statistics.median(
                a / b for a, b in zip(found["ours"], found["Triton"])), 2)
    return result


# ---- many

def thread_cpu(pid, name):
    """Seconds on a CPU of the thread of that name."""
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == name:
            return int((task / "schedstat").read_text().split()[0]) / 1e9
    raise RuntimeError(f"no thread {name}")


def many():
    def fill(folder):
        for i in range(1000):
            models.identity(folder, f"m{i}", [("IN", "FP32", [-1])])

    interval = 0.25
    result = {}
    server = Server(fill, parts=PARTS, log_level="warn", http="    "
                    "inference_model_control poll interval=250ms "
                    "inotify=off;\n")
    start = time.monotonic()
    status, text = server.check_config()
    result["nginx -t s"] = round(time.monotonic() - start, 3)
    if status != 0:
        raise RuntimeError(text)
    start = time.monotonic()
    with server.start(seconds=120):
        result["start s"] = round(time.monotonic() - start, 2)
        times = []
        for _ in range(20):
            start = time.perf_counter()
            answer = server.post("/v2/repository/index", b"")
            times.append(time.perf_counter() - start)
            if len(json.loads(answer.body)) != 1000:
                raise RuntimeError("the index lacks models")
        result["index ms"] = round(statistics.median(times) * 1e3, 2)
        time.sleep(2)
        core = server.core()
        start, before = time.monotonic(), thread_cpu(core, "poll")
        time.sleep(5 if QUICK else 15)
        share = (thread_cpu(core, "poll") - before) \
            / (time.monotonic() - start)
        # so much of each interval and the look behind it
        result["look ms"] = round(interval * share / (1 - share) * 1e3, 2)
        result["core MiB"] = round(resident(core) / (1 << 20), 1)
    return result


def main():
    kinds = {"neighbour": neighbour, "cycles": cycles, "start": start,
             "many": many}
    wanted = sys.argv[1:] or list(kinds)
    results = {}
    process.become_subreaper()
    for kind in wanted:
        results[kind] = kinds[kind]()
        print(kind)
        for name, value in results[kind].items():
            print(f"    {name:24} {value}", flush=True)
    with tempfile.NamedTemporaryFile("w", dir=ROOT / "build",
                                     delete=False) as f:
        json.dump(results, f, indent=1)
    os.replace(f.name, ROOT / "build" / "bench-models.json")


if __name__ == "__main__":
    main()
