#!/usr/bin/env python3
"""Side by side with another build of ours: what has a change cost?

    python t/bench/base.py DIR [WORDS]   only scenarios whose name holds a word

DIR is the build directory of another checkout.  Both servers run throughout;
per scenario they are measured in interleaved rounds, each round begun by the other
one.  A ratio is this build's figure by the base's in the same round; printed
are the medians, and for ratios the quartiles, which show the run's noise.

INF_BUILD names this build, QUICK=1 means three rounds.
"""

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

# Many short rounds: what else the machine does changes between them.
ROUNDS = 3 if bench.QUICK else 17
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


def start(build, repository):
    server = Server(repository, workers=int(os.environ.get("WORKERS", "1")),
                    log_level="warn", core=build / "inference-core",
                    parts="health metadata config infer metrics",
                    backends=build / "backends",
                    http="    keepalive_requests 1000000000;")
    server.write_config(module=build / "ngx_http_inference_module.so")
    return server.start()


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:5.2f} ({low:.2f}-{high:.2f})"


def compare(servers, scenario, concurrency, body):
    samples = {who: [] for who in servers}
    for turn in range(ROUNDS):
        for who in sorted(servers, reverse=turn % 2 == 1):
            samples[who].append(measure(run_wrk, servers[who], scenario.path,
                                        scenario, concurrency, body))
    line = f"{scenario.name:<18} {concurrency:>2} |"
    for who in ("this", "base"):
        figures = median(samples[who])
        line += "".join(f" {figures[f]:>9.1f}" for f in FIGURES) + " |"
    for figure in FIGURES:
        line += " " + quartiles([
            this[figure] / max(base[figure], 0.01)
            for this, base in zip(samples["this"], samples["base"])])
    print(line, flush=True)


def run(base, words):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="inf-bench-"))
    repository = folder / "models"
    repository.mkdir()
    fill(repository)
    body = folder / "request"
    servers = {}
    try:
        servers["this"] = start(BUILD, repository)
        servers["base"] = start(base, repository)
        print(f"{ROUNDS} interleaved rounds of {bench.SECONDS} s; this build: "
              f"{BUILD}, base: {base}")
        columns = "".join(f" {f:>9}" for f in FIGURES.values()) + " |"
        print(f"{'scenario':<18} {'c':>2} |" + columns * 2 + "".join(
            f" {f + ' this/base':<17}" for f in FIGURES.values()))
        for scenario in scenarios():
            if words and not any(w in scenario.name for w in words):
                continue
            for server in servers.values():
                scenario.verify(server.port)
            body.write_bytes(scenario.body)
            for concurrency in scenario.concurrencies:
                compare(servers, scenario, concurrency, body)
        print("longest turn of an event loop for one request: " + ", ".join(
            f"{who} {longest_turn(server):.2f} ms"
            for who, server in servers.items()))
    finally:
        for server in servers.values():
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: base.py DIR [WORDS]")
    other = pathlib.Path(sys.argv[1]).resolve()
    if not (other / "inference-core").is_file():
        sys.exit(f"base.py: {other} is no build directory: inference-core is "
                 "not there")
    run(other, sys.argv[2:])
