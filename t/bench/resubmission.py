#!/usr/bin/env python3
"""The cost of requests that survive a core's crash, and of the crash to
them.

    python t/bench/resubmission.py [WORDS]
                             only scenarios whose name holds a word

The same build with `inference_tries 3` ("this") beside `inference_tries 1`
("base"), as base.py compares builds.  Then one server under load, at rest and
with its core killed every two seconds: latency of the requests, none of which
may fail.  INF_BUILD names the build, QUICK=1 means short runs.
"""

import functools
import pathlib
import shutil
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from lib.server import BUILD                                # noqa: E402
import base                                                 # noqa: E402
import run as bench                                         # noqa: E402
from run import binary, fill, floats, wrk                   # noqa: E402

CONCURRENCY = 32
PAUSE = 2.0                         # between two kills, in seconds
SECONDS = 4 if bench.QUICK else 20


def kill_again_and_again(server, stop, kills):
    while not stop.wait(PAUSE):
        server.end_core()
        kills.append(server.core())


def load(server, scenario, body, kills):
    """The figures of one run; fails if a request does."""
    stop = threading.Event()
    killer = threading.Thread(target=kill_again_and_again,
                              args=(server, stop, kills))
    if kills is not None:
        killer.start()
    try:
        return wrk(server.port, scenario.path, scenario, CONCURRENCY, body)
    finally:
        stop.set()
        if kills is not None:
            killer.join()


def kills_under_load(scenarios):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="inf-bench-"))
    repository = folder / "models"
    repository.mkdir()
    fill(repository)
    body = folder / "request"
    server = base.start(BUILD, repository)
    bench.SECONDS = SECONDS
    print(f"{CONCURRENCY} in flight, {SECONDS} s each, a kill every {PAUSE} s")
    print(f"{'scenario':<18} | {'kills':>5} {'r/s':>9} {'p50 us':>9} "
          f"{'p99 us':>9} {'max us':>9}")
    try:
        for scenario in scenarios:
            body.write_bytes(scenario.body)
            for kills in (None, []):
                scenario.verify(server.port)
                found = load(server, scenario, body, kills)
                rate = found["requests"] * 1e6 / found["duration_us"]
                print(f"{scenario.name:<18} | {len(kills or []):>5} "
                      f"{rate:>9.1f} {found['p50_us']:>9} "
                      f"{found['p99_us']:>9} {found['max_us']:>9}", flush=True)
    finally:
        server.stop(check=False)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    chosen = base.named(sys.argv[1:])
    base.side_by_side(
        {"this": functools.partial(base.start, BUILD),
         "base": functools.partial(base.start, BUILD,
                                   settings=" inference_tries 1;")},
        chosen, "this: inference_tries 3, base: inference_tries 1")
    kills_under_load([binary("64 B binary", 64, [CONCURRENCY]),
                      binary("1 MiB binary", bench.LARGE, [CONCURRENCY]),
                      floats("4096 floats JSON", 4096, [CONCURRENCY])])
