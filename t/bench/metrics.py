#!/usr/bin/env python3
"""The cost of metrics: everything on and scraped every second, against off.

Two servers, one backend (identity), the same load in interleaved rounds;
medians of requests per second and of the server's CPU per request, and of
each round's ratio.  "off": what is always counted, nobody asks for it.  "on":
histograms, summaries, CPU gauges, and /metrics read once a second.

A busy machine hides one per cent.  So what is counted for a request is also
measured alone (bench_metrics), and a scrape without nginx and a network
(bench_abi): CPU time, the least of many rounds, and instructions (by
valgrind, where there is one).  Both together are compared with the CPU that a
request takes as it is served.

    python t/bench/metrics.py [BYTES ...]       sizes of the input (64)

QUICK=1: fewer rounds.  C="1 8": these concurrencies.  MODELS=100: so many
models are in the text that is scraped.
"""

import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lib import models, process                             # noqa: E402
from lib.server import BUILD, Server                        # noqa: E402
from lib.wire import infer_path                             # noqa: E402

QUICK = bool(os.environ.get("QUICK"))
ROUNDS = 5 if QUICK else 31
SECONDS = 1
LUA = pathlib.Path(__file__).with_name("post.lua")
CONCURRENCIES = [int(c) for c in os.environ.get("C", "1 8 32").split()]
MODELS = int(os.environ.get("MODELS", "10"))
SCRAPES = 100
TARGET = 1.0            # per cent

SETTINGS = {
    "off": "cpu=off gpu=off counters=off",
    "on": "histograms=on summaries=on",
}

EVERYTHING = ["histogram_latencies=true", "summary_latencies=true"]


def fill(repository):
    for i in range(MODELS):
        models.identity(repository, f"m{i}", [("IN", "UINT8", [-1])])


def start(name, **kw):
    return Server(fill, log_level="warn", parts="all metrics", http=f"""
    keepalive_requests 1000000000;
    inference_metrics {SETTINGS[name]};
""", **kw)


def request(size):
    header = json.dumps({
        "inputs": [{"name": "IN", "datatype": "UINT8", "shape": [size],
                    "parameters": {"binary_data_size": size}}],
        "outputs": [{"name": "OUT", "parameters": {"binary_data": True}}]},
        separators=(",", ":")).encode()
    return len(header), header + bytes(size)


def scrape(server):
    answer = server.get("/metrics")
    assert answer.status == 200, answer
    return answer.body


def measure(name, server, body, head, concurrency):
    env = dict(os.environ, BENCH_BODY=str(body),
               BENCH_HEADERS="Content-Type: application/octet-stream\n"
                             f"Inference-Header-Content-Length: {head}")
    pids = server.processes()
    done = threading.Event()

    def look():
        while not done.wait(0.5 if SECONDS <= 1 else 1):
            scrape(server)
            done.wait(1)

    watcher = threading.Thread(target=look)
    before = process.cpu_seconds(pids)
    if name == "on":
        watcher.start()
    out = subprocess.run(
        ["wrk", "-t1", f"-c{concurrency}", f"-d{SECONDS}s", "--timeout",
         "30s", "-s", str(LUA),
         f"http://127.0.0.1:{server.port}{infer_path('m0')}"],
        env=env, capture_output=True, text=True, check=True).stdout
    cpu = process.cpu_seconds(pids) - before
    done.set()
    if name == "on":
        watcher.join()
    found = json.loads(out[out.rindex("{"):])
    if found["errors"]:
        raise RuntimeError(f"{name}: {found['errors']} errors\n{out}")
    return (found["requests"] / (found["duration_us"] / 1e6),
            cpu * 1e6 / max(found["requests"], 1))


def compare(servers, size, concurrency, folder):
    head, data = request(size)
    body = folder / "request"
    body.write_bytes(data)
    samples = {name: [] for name in servers}
    for n in range(ROUNDS + 1):             # the first one warms up
        for name in sorted(servers, reverse=n % 2):
            samples[name].append(measure(name, servers[name], body, head,
                                         concurrency))
    rate, cpu = ({m: statistics.median(s[i] for s in list_[1:])
                  for m, list_ in samples.items()} for i in (0, 1))
    change = [100 * (statistics.median(
        c[i] / p[i] for c, p in zip(samples["on"][1:],
                                    samples["off"][1:])) - 1)
              for i in (0, 1)]
    print(f"{size:>9} B {concurrency:>3} |"
          f" {rate['off']:>9.0f} {cpu['off']:>7.2f} |"
          f" {rate['on']:>9.0f} {cpu['on']:>7.2f} |"
          f" {change[0]:>+6.1f} % {change[1]:>+6.1f} %", flush=True)
    return rate["on"], cpu["off"]


def tell(program, *arguments, under=()):
    """The numbers that a program prints."""
    return [float(x) for x in subprocess.run(
        [*under, BUILD / program, *map(str, arguments)],
        capture_output=True, text=True, check=True).stdout.split()]


def instructions(folder, program, *arguments):
    """Of the whole program; what it prints."""
    profile = folder / "callgrind"
    said = tell(program, *arguments, under=[
        "valgrind", "-q", "--tool=callgrind",
        f"--callgrind-out-file={profile}"])
    return int(re.search(r"^(?:summary|totals): (\d+)", profile.read_text(),
                         re.M)[1]), said


def alone(rate, served, folder):
    """rate: requests per second; served: CPU of one, us."""
    subprocess.run(["cmake", "--build", BUILD, "--target", "bench_metrics",
                    "bench_abi"], check=True, stdout=subprocess.DEVNULL)
    off, on = tell("bench_metrics")
    scrape_us = min(tell("bench_abi", 100, SCRAPES, *EVERYTHING)[1]
                    for _ in range(ROUNDS))
    text = 1000 * scrape_us * MODELS / rate     # of a request's second
    share = (on - off + text) / 10 / served
    print(f"\nalone: a request's statistics {off:.0f} ns, histograms and"
          f" summaries {on - off:.0f} ns more; a scrape {scrape_us:.0f} us a"
          f" model, with {MODELS} models every {rate:.0f} requests"
          f" {text:.0f} ns a request\nof {served:.2f} us that a served"
          f" request takes: {share:.2f} %,"
          f" {'met' if share <= TARGET else 'MISSED'} (target {TARGET:g} %)")

    if not shutil.which("valgrind"):
        print("no valgrind: instructions are not counted")
        return
    (few, (n,)), (many, _) = (instructions(folder, "bench_metrics", w)
                              for w in ("off", "on"))
    none, _ = instructions(folder, "bench_abi", 100, 0, *EVERYTHING)
    some, _ = instructions(folder, "bench_abi", 100, SCRAPES, *EVERYTHING)
    print(f"instructions: a request's histograms and summaries"
          f" {(many - few) / n:.0f}, a scrape of one model"
          f" {(some - none) / SCRAPES:.0f}")


def run(sizes):
    with tempfile.TemporaryDirectory(prefix="inf-bench-") as temporary:
        folder = pathlib.Path(temporary)
        folder.chmod(0o755)
        print(f"{ROUNDS} interleaved rounds of {SECONDS} s, medians; CPU of"
              " the server in µs per request\n"
              f"{'input':>11} {'c':>3} | {'off   r/s':>9} {'CPU':>7} |"
              f" {'on    r/s':>9} {'CPU':>7} | {'r/s':>8} {'CPU':>8}")
        with start("off") as off, start("on") as on:
            found = [compare({"off": off, "on": on}, size, c, folder)
                     for size in sizes for c in CONCURRENCIES]
        alone(*max(found), folder)              # where it weighs most


if __name__ == "__main__":
    run([int(a) for a in sys.argv[1:]] or [64])
