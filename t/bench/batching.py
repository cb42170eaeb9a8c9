#!/usr/bin/env python3
"""Dynamic batching side by side with the real peer.

Both servers load the same identity backend, whose execution takes 1 ms and
10 us for each row (it sleeps: an accelerator's work costs no CPU here), and
the same configurations:

    greedy      dynamic_batching { }: what waits when an instance is free goes
    delayed     a preferred size of 32 and a delay of 2 ms
    two         greedy with two instances
    single      no batching at all

Clients send one row each, one after the other.  "rows" is the mean size of an
execution's batch as the servers' own statistics tell it.  "over" is the p50
above the ideal, what scheduling that costs no time would give: the clients
are then in so many groups of equal size as full batches need, but without a
delay one group more than there are instances (it waits while they execute),
and each instance executes one group after the other, in the time that its
executions really took.  Interleaved rounds, medians.

    python t/bench/batching.py [WORDS]      only cases whose name holds a word

QUICK=1: two rounds of one second.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from lib import models, wire                                # noqa: E402
from lib.server import Server                               # noqa: E402
from peer import Peer                                       # noqa: E402
from run import (ROUNDS, SECONDS, Scenario, measure,        # noqa: E402
                 median, run_wrk)

EXECUTION_US, ROW_US, BATCH = 1000, 10, 32
CONCURRENCIES = [int(c) for c in os.environ.get("C", "32 128").split()]

# instances, max_batch_size, whether it waits for company, configuration
CASES = {
    "greedy": (1, BATCH, False, "dynamic_batching { }\n"),
    "delayed": (1, BATCH, True, "dynamic_batching { preferred_batch_size: 32 "
                                "max_queue_delay_microseconds: 2000 }\n"),
    "two": (2, BATCH, False, "dynamic_batching { }\n"),
    "single": (2, 0, False, ""),
}


def fill(repository):
    for name, (instances, batch, _, extra) in CASES.items():
        models.identity(
            repository, name, [("IN", "FP32", [16])], max_batch=batch,
            instances=instances, extra=extra,
            parameters={"execute_delay_ms": EXECUTION_US // 1000,
                        "row_delay_us": ROW_US})


def scenario(name):
    shape = [16] if CASES[name][1] == 0 else [1, 16]
    header = {"inputs": [{"name": "IN", "datatype": "FP32", "shape": shape,
                          "parameters": {"binary_data_size": 64}}],
              "outputs": [{"name": "OUT",
                           "parameters": {"binary_data": True}}]}
    return Scenario(name, name, header, bytes(range(64)), [])


def ideal_us(name, concurrency, late=0.0):
    """late: how much longer an execution was than it was meant to be."""
    instances, batch, waits, _ = CASES[name]
    groups = max(concurrency / max(batch, 1), 1 if waits else instances + 1)
    execution = EXECUTION_US + concurrency / groups * ROW_US + late
    return max(groups / instances, 1) * execution


def counted(server, name):
    """Rows, executions and their time in us so far."""
    answer = wire.fetch(server.port, "GET", f"/v2/models/{name}/stats")
    stats = answer.json()["model_stats"][0]
    batches = [b["compute_infer"] for b in stats["batch_stats"]]
    return (stats["inference_count"], sum(b["count"] for b in batches),
            sum(b["ns"] for b in batches) / 1000)


def sample(server, work, concurrency, body):
    before = counted(server, work.name)
    m = measure(run_wrk, server, work.path, work, concurrency, body)
    rows, executions, us = (b - a for a, b in
                            zip(before, counted(server, work.name)))
    m["rows"] = rows / executions
    late = us / executions - EXECUTION_US - m["rows"] * ROW_US
    m["over"] = m["p50"] - ideal_us(work.name, concurrency, late)
    return m


COLUMNS = (f"{'batching':<8} {'c':>3} {'ideal':>6} |"
           + "".join(f" {w:>8} {'p50':>6} {'p99':>6} {'over':>6} {'rows':>5}"
                     f" {'CPU':>6} |" for w in ("ours r/s", "peer r/s"))
           + f" {'r/s':>6} {'p99':>6} {'over':>6}")


def row(name, concurrency, m):
    line = f"{name:<8} {concurrency:>3} {ideal_us(name, concurrency):>6.0f} |"
    for s in m["ours"], m["peer"]:
        line += (f" {s['rps']:>8.0f} {s['p50']:>6.0f} {s['p99']:>6.0f}"
                 f" {s['over']:>6.0f} {s['rows']:>5.1f} {s['cpu']:>6.1f} |")
    ours, peer = m["ours"], m["peer"]
    over = (f"{max(ours['over'], 0) / peer['over']:>5.2f}x"
            if peer["over"] > 0 else f"{'-':>6}")
    return (line + f" {ours['rps'] / peer['rps']:>5.2f}x"
            f" {ours['p99'] / peer['p99']:>5.2f}x {over}")


def run(words):
    with tempfile.TemporaryDirectory(prefix="inf-bench-") as name:
        folder = pathlib.Path(name)
        repository = folder / "models"
        repository.mkdir()
        fill(repository)
        body = folder / "request"
        with Server(repository, log_level="warn", parts="all",
                    http="    keepalive_requests 1000000000;") as ours:
            peer = Peer(repository, folder)
            try:
                servers = {"ours": ours, "peer": peer}
                print(f"{ROUNDS} interleaved rounds of {SECONDS} s, medians; "
                      f"times and CPU per request in µs\n{COLUMNS}")
                for case in CASES:
                    if words and not any(w in case for w in words):
                        continue
                    compare(case, servers, body)
                print("r/s, p99, over: ours / peer")
            finally:
                peer.stop()


def compare(case, servers, body):
    work = scenario(case)
    body.write_bytes(work.body)
    for server in servers.values():
        work.verify(server.port)
    for concurrency in CONCURRENCIES:
        samples = {who: [] for who in servers}
        for _ in range(ROUNDS):
            for who, server in servers.items():
                samples[who].append(sample(server, work, concurrency, body))
        print(row(case, concurrency,
                  {who: median(s) for who, s in samples.items()}), flush=True)


if __name__ == "__main__":
    run(sys.argv[1:])
