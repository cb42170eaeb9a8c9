#!/usr/bin/env python3
"""gRPC side by side with the real peer: same machine, same backend, same run.

Unary calls and streams whose messages are sent at once come from h2load, other
messages of a stream from grpcio in this process, which costs more than either
server: there CPU is the figure to look at.  Per row the servers are measured
in interleaved rounds; the table shows medians, and CPU is that of the server's
whole process tree.

    python t/bench/grpc_calls.py [WORDS]     only rows whose name holds a word

QUICK=1: two rounds of one second.  Results also go to build/bench-grpc.json.
"""

import json
import os
import pathlib
import random
import shutil
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from lib import models, process                             # noqa: E402
from lib.grpc_client import (SERVICE, Client, frame, infer,     # noqa: E402
                             tensor)
from lib.server import ROOT, Server                         # noqa: E402
from peer import Peer                                       # noqa: E402
from run import h2load, quantiles                           # noqa: E402

QUICK = bool(os.environ.get("QUICK"))
ROUNDS = 2 if QUICK else 5
SECONDS = 1 if QUICK else 2
CONNECTIONS = 8
WINDOW = 256                    # messages of a flow that are not answered yet


def request(size):
    data = random.Random(size).randbytes(size)
    return infer("bytes", tensor("IN", "UINT8", [size], data))


def verify(answer, size):
    raw = answer.raw_output_contents[0]
    assert raw == request(size).raw_input_contents[0], "wrong bytes came back"


class Unary:
    """Calls of ModelInfer, so many at a time."""

    method = "ModelInfer"
    messages = 1                    # of a call

    def __init__(self, name, size, in_flight, connections=CONNECTIONS):
        self.name = name
        self.size = size
        self.in_flight = in_flight
        self.connections = min(connections, in_flight)

    def verify(self, port):
        with Client(port) as client:
            verify(client.call("ModelInfer", request(self.size)), self.size)

    def run(self, port, folder):
        body = folder / "message"
        body.write_bytes(frame(request(self.size)) * self.messages)
        times = h2load(
            [f"-c{self.connections}",
             f"-m{self.in_flight // self.connections}", f"-D{SECONDS}",
             "-w24", "-W26", "-d", str(body),
             "-H", "content-type: application/grpc", "-H", "te: trailers",
             f"http://127.0.0.1:{port}{SERVICE}{self.method}"],
            folder / "h2load.log", self.name)
        return (len(times) * self.messages, SECONDS, *quantiles(times))


class Streams(Unary):
    """Calls of ModelStreamInfer with many messages each, sent at once; p50 and
    p99 are those of whole streams."""

    method = "ModelStreamInfer"
    messages = 256

    def verify(self, port):
        with Client(port) as client, client.stream() as stream:
            for _ in range(self.messages):
                stream.send(request(self.size))
            for _ in range(self.messages):
                answer = stream.read()
                assert not answer.error_message, answer.error_message
                verify(answer.infer_response, self.size)


class Messages:
    """Messages of one ModelStreamInfer; window: so many at a time."""

    def __init__(self, name, size, window):
        self.name = name
        self.size = size
        self.in_flight = window

    def verify(self, port):
        with Client(port) as client, client.stream() as stream:
            stream.send(request(self.size))
            answer = stream.read()
            assert not answer.error_message, answer.error_message
            verify(answer.infer_response, self.size)

    def run(self, port, folder):
        del folder
        message, sent, times = request(self.size), [], []
        with Client(port) as client, client.stream() as stream:
            began = time.perf_counter()
            end = began + SECONDS
            while (now := time.perf_counter()) < end or len(times) < len(sent):
                while now < end and len(sent) - len(times) < self.in_flight:
                    sent.append(time.perf_counter())
                    stream.send(message)
                answer = stream.read()
                if answer.error_message:
                    raise RuntimeError(f"{self.name}: {answer.error_message}")
                times.append((time.perf_counter() - sent[len(times)]) * 1e6)
            seconds = time.perf_counter() - began
            stream.end()
            stream.rest()
        return (len(times), seconds, *quantiles(times))


def rows():
    return [*(Unary("unary 64 B", 64, n) for n in (1, 32, 128)),
            Unary("unary 64 B, 4 x 8", 64, 32, 4),
            *(Unary("unary 1 MiB", 1 << 20, n) for n in (1, 8)),
            Streams("streams of 256 x 64 B", 64, 1),
            Streams("streams of 256 x 64 B", 64, 8),
            Messages("stream ping-pong 64 B", 64, 1),
            Messages("stream flow 64 B", 64, WINDOW),
            Messages("stream flow 64 KiB", 1 << 16, 16)]


# ---- the table

COLUMNS = (f"{'row':<22} {'at once':>7} |"
           + "".join(f" {w:>9} {'p50':>7} {'p99':>7} {'CPU':>8} |"
                     for w in ("ours /s", "peer /s"))
           + f" {'/s':>6} {'CPU':>6}")


def measure(server, row, folder):
    pids = server.processes()
    before = process.cpu_seconds(pids)
    count, seconds, p50, p99 = row.run(server.port2, folder)
    cpu = process.cpu_seconds(pids) - before
    return {"rate": count / seconds, "p50": p50, "p99": p99,
            "cpu": cpu * 1e6 / max(count, 1)}


def compare(servers, row, folder):
    samples = {who: [] for who in servers}
    for _ in range(ROUNDS):
        for who, server in servers.items():
            samples[who].append(measure(server, row, folder))
    found = {who: {k: statistics.median(x[k] for x in s) for k in s[0]}
             for who, s in samples.items()}
    ours, peer = found["ours"], found["peer"]
    print(f"{row.name:<22} {row.in_flight:>7} |" + "".join(
        f" {m['rate']:>9.0f} {m['p50']:>7.0f} {m['p99']:>7.0f}"
        f" {m['cpu']:>8.1f} |" for m in (ours, peer))
        + f" {ours['rate'] / peer['rate']:>5.2f}x"
        f" {peer['cpu'] / max(ours['cpu'], 0.01):>5.2f}x", flush=True)
    return {"row": row.name, "at_once": row.in_flight, **found}


def run(words):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="inf-bench-"))
    repository = folder / "models"
    repository.mkdir()
    models.identity(repository, "bytes", [("IN", "UINT8", [-1])])
    servers = {}
    try:
        servers["ours"] = Server(
            repository, workers=int(os.environ.get("WORKERS", "1")),
            log_level="warn", http2=True,
            http="    http2_chunk_size 16k;").start()   # as triton.conf
        servers["peer"] = Peer(repository, folder, grpc=True)
        results = []
        print(f"{ROUNDS} interleaved rounds of {SECONDS} s, medians; "
              "latencies and CPU per message in µs\n" + COLUMNS)
        for row in rows():
            if words and not any(w in row.name for w in words):
                continue
            for server in servers.values():
                row.verify(server.port2)
            results.append(compare(servers, row, folder))
        print("/s: ours / peer; CPU: peer / ours")
        (ROOT / "build" / "bench-grpc.json").write_text(json.dumps(
            {"time": time.strftime("%F %T"), "rounds": ROUNDS,
             "seconds": SECONDS, "rows": results}, indent=1))
    finally:
        for server in servers.values():
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    run(sys.argv[1:])
