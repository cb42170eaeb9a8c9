#!/usr/bin/env python3
"""The cost of the response cache when it never hits, and its gain when it
does.

One server, one backend (identity), the same model with and without a cache,
in interleaved rounds; medians of requests per second and of the server's CPU
per request, and of each round's ratio.  "miss": every request is another one,
and the cache is full: each is hashed, looked up and stored.
"hit": it is always the same one.  The server is in our session, because the
kernel may share the CPU out between sessions first.

    python t/bench/cache.py [BYTES ...]     sizes of the input (4096)

QUICK=1: fewer rounds.  C="1 8": these concurrencies.  SIZE=1m: of the cache.
"""

import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lib import models, process                             # noqa: E402
from lib.server import Server                               # noqa: E402

QUICK = bool(os.environ.get("QUICK"))
ROUNDS = 5 if QUICK else 31
SECONDS = 1
LUA = pathlib.Path(__file__).with_name("distinct.lua")
DIGITS = 16
CONCURRENCIES = [int(c) for c in os.environ.get("C", "1 8 32").split()]


def measure(server, model, body, head, distinct, concurrency):
    env = dict(os.environ, BENCH_BODY=str(body),
               BENCH_DISTINCT=str(DIGITS if distinct else 0),
               BENCH_HEADERS="Content-Type: application/octet-stream\n"
                             f"Inference-Header-Content-Length: {head}")
    pids = server.processes()
    before = process.cpu_seconds(pids)
    out = subprocess.run(
        ["wrk", "-t1", f"-c{concurrency}", f"-d{SECONDS}s", "--timeout",
         "30s", "-s", str(LUA),
         f"http://127.0.0.1:{server.port}/v2/models/{model}/infer"],
        env=env, capture_output=True, text=True, check=True).stdout
    cpu = process.cpu_seconds(pids) - before
    found = json.loads(out[out.rindex("{"):])
    if found["errors"]:
        raise RuntimeError(f"{model}: {found['errors']} errors\n{out}")
    return (found["requests"] / (found["duration_us"] / 1e6),
            cpu * 1e6 / max(found["requests"], 1))


def fill(repository):
    for model, cached in (("plain", False), ("cached", True)):
        models.identity(repository, model, [("IN", "UINT8", [-1])],
                        extra="response_cache { enable: true }\n"
                        if cached else "")


def compare(server, size, distinct, concurrency, folder):
    header = json.dumps({
        "inputs": [{"name": "IN", "datatype": "UINT8", "shape": [size],
                    "parameters": {"binary_data_size": size}}],
        "outputs": [{"name": "OUT", "parameters": {"binary_data": True}}]},
        separators=(",", ":")).encode()
    body = folder / "request"
    body.write_bytes(header + random.Random(size).randbytes(size))
    samples = {"plain": [], "cached": []}
    for n in range(ROUNDS + 1):             # the first one warms up
        turns = sorted(samples.items(), reverse=n % 2)
        for model, list_ in turns:
            list_.append(measure(server, model, body, len(header), distinct,
                                 concurrency))
    rate, cpu = ({m: statistics.median(s[i] for s in list_[1:])
                  for m, list_ in samples.items()} for i in (0, 1))
    change = [100 * (statistics.median(
        c[i] / p[i] for c, p in zip(samples["cached"][1:],
                                    samples["plain"][1:])) - 1)
              for i in (0, 1)]
    print(f"{size:>9} B {'miss' if distinct else 'hit':<5} {concurrency:>2} |"
          f" {rate['plain']:>9.0f} {cpu['plain']:>7.2f} |"
          f" {rate['cached']:>9.0f} {cpu['cached']:>7.2f} |"
          f" {change[0]:>+6.1f} % {change[1]:>+6.1f} %", flush=True)


def run(sizes):
    with tempfile.TemporaryDirectory(prefix="inf-bench-") as folder, \
            Server(fill, log_level="warn", http="""
    keepalive_requests 1000000000;
    inference_response_cache local size=%s;
""" % os.environ.get("SIZE", "32m")) as server:
        print(f"{ROUNDS} interleaved rounds of {SECONDS} s, medians; CPU of"
              " the server in µs per request\n"
              f"{'input':>11} {'':<5} {'c':>2} | {'plain r/s':>9} {'CPU':>7} |"
              f" {'cache r/s':>9} {'CPU':>7} | {'r/s':>8} {'CPU':>8}")
        for size in sizes:
            for distinct in (True, False):
                for concurrency in CONCURRENCIES:
                    compare(server, size, distinct, concurrency,
                            pathlib.Path(folder))


if __name__ == "__main__":
    run([int(a) for a in sys.argv[1:]] or [4096])
