#!/usr/bin/env python3
"""Side by side with another build of ours: what has a change cost?

    python t/bench/base.py DIR [WORDS]   only scenarios whose name holds a word

DIR is the build directory of another checkout.  Per scenario both servers are
measured in interleaved rounds, each round begun by the other one.  They are
started anew several times, each time in the other order: a server's place in
memory moves a figure by several percent for as long as it runs.  A ratio is
this build's figure by the base's in the same round; printed are the medians,
and for ratios the quartiles, which show the run's noise.

INF_BUILD names this build, QUICK=1 means one round of each start.
"""

import functools
import os
import pathlib
import shutil
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from lib.server import BUILD, Server                        # noqa: E402
import run as bench                                         # noqa: E402
from run import LARGE, binary, fill, floats, longest_turn   # noqa: E402
from run import measure, median, run_wrk                    # noqa: E402

STARTS = 6
# Short rounds: what else the machine does changes between them.
ROUNDS = 1 if bench.QUICK else 4        # of each start
bench.SECONDS = 1
FIGURES = {"rps": "r/s", "p50": "p50 us", "cpu": "CPU us"}


def scenarios():
    small = [1, 8, 32]
    return [binary("64 B binary", 64, small),
            binary("4 KiB binary", 4096, small),
            floats("16 floats JSON", 16, small),
            floats("4096 floats JSON", 4096, small),
            binary("1 MiB binary", LARGE, [1, 8]),
            binary("16 MiB binary", 16 * LARGE, [1, 4])]


def start(build, repository, settings=""):
    """settings: of nginx's http block."""
    server = Server(repository, workers=int(os.environ.get("WORKERS", "1")),
                    log_level="warn", core=build / "inference-core",
                    parts="health metadata config infer metrics",
                    backends=build / "backends",
                    http="    keepalive_requests 1000000000;" + settings)
    server.write_config(module=build / "ngx_http_inference_module.so")
    return server.start()


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:5.2f} ({low:.2f}-{high:.2f})"


def compare(servers, scenario, concurrency, body, samples):
    for turn in range(ROUNDS):
        for who in sorted(servers, reverse=turn % 2 == 1):
            samples[who].append(measure(run_wrk, servers[who], scenario.path,
                                        scenario, concurrency, body))


def row(name, concurrency, samples):
    line = f"{name:<18} {concurrency:>2} |"
    for who in ("this", "base"):
        figures = median(samples[who])
        line += "".join(f" {figures[f]:>9.1f}" for f in FIGURES) + " |"
    for figure in FIGURES:
        line += " " + quartiles([
            this[figure] / max(base[figure], 0.01)
            for this, base in zip(samples["this"], samples["base"])])
    return line


def side_by_side(starters, scenarios, title):
    """starters: {"this": f, "base": f}, each from a model repository to a
    server that runs."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="inf-bench-"))
    repository = folder / "models"
    repository.mkdir()
    fill(repository)
    body = folder / "request"
    rows = [(scenario, concurrency, {who: [] for who in starters})
            for scenario in scenarios
            for concurrency in scenario.concurrencies]
    turns = {who: [] for who in starters}
    servers = {}
    try:
        for number in range(STARTS):
            for who in sorted(starters, reverse=number % 2 == 1):
                servers[who] = starters[who](repository)
            for scenario, concurrency, samples in rows:
                for server in servers.values():
                    scenario.verify(server.port)
                body.write_bytes(scenario.body)
                compare(servers, scenario, concurrency, body, samples)
            for who in list(servers):
                turns[who].append(longest_turn(servers[who]))
                servers.pop(who).stop()
        print(f"{STARTS} starts, {ROUNDS} interleaved rounds of "
              f"{bench.SECONDS} s each; {title}")
        columns = "".join(f" {f:>9}" for f in FIGURES.values()) + " |"
        print(f"{'scenario':<18} {'c':>2} |" + columns * 2 + "".join(
            f" {f + ' this/base':<17}" for f in FIGURES.values()))
        for scenario, concurrency, samples in rows:
            print(row(scenario.name, concurrency, samples))
        print("longest turn of an event loop for one request: " + ", ".join(
            f"{who} {max(turns[who]):.2f} ms" for who in turns), flush=True)
    finally:
        for server in servers.values():
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def named(words):
    return [s for s in scenarios()
            if not words or any(w in s.name for w in words)]


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: base.py DIR [WORDS]")
    other = pathlib.Path(sys.argv[1]).resolve()
    if not (other / "inference-core").is_file():
        sys.exit(f"base.py: {other} is no build directory: inference-core is "
                 "not there")
    side_by_side({"this": functools.partial(start, BUILD),
                  "base": functools.partial(start, other)},
                 named(sys.argv[2:]), f"this build: {BUILD}, base: {other}")
