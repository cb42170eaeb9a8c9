#!/usr/bin/env python3
"""The cost of inference_balance for a balancer: nginx's round robin and
least_conn beside `queue`, without and with sequences, before two nodes.

CPU of the balancer alone, per request of 64 bytes; a client's connection
stands for a sequence.  One balancer has all methods, as locations, so that
rounds alternate between them; printed are the medians, and the quartiles of
the difference to round robin within a round.

    python t/bench/balance_hop.py

QUICK=1: fewer rounds.
"""

import pathlib
import shutil
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from lib import models, process                             # noqa: E402
from lib.nodes import BALANCER                              # noqa: E402
from lib.server import Server                               # noqa: E402
from run import QUICK, h2load                               # noqa: E402

ROUNDS = 3 if QUICK else 12
PATH = "/v2/models/bytes/infer"
METHODS = {
    "round robin": "",
    "least_conn": "least_conn;",
    "queue": "inference_balance queue interval=100ms;",
    "queue, sequences":
        "inference_balance queue interval=100ms sequence=$connection;"}


def place(method):
    return f"m{list(METHODS).index(method)}"


def balancer(nodes):
    servers = "".join(f" server 127.0.0.1:{n.port};" for n in nodes)
    http, server = "    keepalive_requests 1000000000;\n", ""
    for method, line in METHODS.items():
        name = place(method)
        http += (f"    upstream {name} {{ zone {name} 64k;{servers} {line}"
                 " keepalive 16; }\n")
        server += f"""
        location /{name}/ {{
            proxy_http_version 1.1; proxy_set_header Connection "";
            proxy_pass http://{name}/;
        }}
"""
    return Server(config=BALANCER, log_level="notice", http=http,
                  server=server).start(wait="")


def measure(front, method, folder):
    """CPU us of the balancer per request."""
    body = folder / "body"
    body.write_bytes(bytes(64))
    pids = front.processes()
    before = process.cpu_seconds(pids)
    times = h2load(
        ["--h1", "-D1", "-c8", "-d", str(body), "-H",
         "inference-header-content-length: 0",
         f"http://127.0.0.1:{front.port}/{place(method)}{PATH}"],
        folder / "h2load.log", method)
    cpu = process.cpu_seconds(pids) - before
    return cpu * 1e6 / len(times)


def run():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="inf-bench-"))
    (folder / "models").mkdir()
    models.identity(folder / "models", "bytes", [("IN", "UINT8", [-1])])
    samples = {m: [] for m in METHODS}
    servers = []
    try:
        for _ in range(2):
            servers.append(Server(folder / "models", log_level="warn", http="""
    keepalive_requests 1000000000;""").start())
        front = balancer(servers)
        servers.append(front)
        assert process.wait_until(
            lambda: front.log_text().count("is ready") == 4, 20)
        for method in METHODS:
            answer = front.post(f"/{place(method)}{PATH}", bytes(64), {
                "Inference-Header-Content-Length": "0"})
            assert answer.status == 200, answer
        order = list(METHODS)
        for turn in range(ROUNDS):
            for method in order[::-1 if turn % 2 else 1]:
                samples[method].append(measure(front, method, folder))
        report(samples)
    finally:
        for server in reversed(servers):
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def report(samples):
    print(f"a hop to one of two nodes: CPU us of the balancer per request, "
          f"{ROUNDS} rounds\n{'method':<20} {'CPU':>8} {'more':>8}")
    for method, values in samples.items():
        low, middle, high = statistics.quantiles(
            [v - plain for v, plain in zip(values, samples["round robin"])],
            n=4, method="inclusive")
        print(f"{method:<20} {statistics.median(values):>8.1f} "
              f"{middle:>8.2f} ({low:.2f} to {high:.2f})", flush=True)


if __name__ == "__main__":
    run()
