#!/usr/bin/env python3
"""The cost of model, version and verb as variables before a request is
received: limit_req by $inference_model beside limit_req by nginx's own $uri,
for models of this nginx and for those of a server behind it.

The row of the fallback is beside that of a proxied model: a model that only
the server behind has, by error_page.  CPU of the nginx in front (and its
core), per request.  Both servers are
started anew several times and measured in interleaved rounds, as by base.py;
printed are the medians, and the quartiles of the difference within a round.
Its target: 3 us at most.

    python t/bench/peek.py [WORDS]      only rows whose name holds a word

QUICK=1: one round of each start.
"""

import pathlib
import shutil
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from lib import models, process                             # noqa: E402
from lib.grpc_client import SERVICE, Client, frame, infer, tensor   # noqa: E402
from lib.server import Server                               # noqa: E402
from run import QUICK, h2load                               # noqa: E402

STARTS = 2 if QUICK else 4
ROUNDS = 1 if QUICK else 6
TARGET_US = 3.0
KEYS = {"uri": "$uri", "model": "$inference_model"}
CALL = SERVICE + "ModelInfer"


class Row:
    def __init__(self, name, prefix, size, grpc, model="bytes"):
        self.name, self.size, self.grpc = name, size, grpc
        self.path = prefix + (CALL if grpc else f"/v2/models/{model}/infer")
        self.data = frame(infer(model, tensor(
            "IN", "UINT8", [size], bytes(size)))) if grpc else bytes(size)

    def verify(self, server):
        if not self.grpc:
            answer = server.post(self.path, self.data, {
                "Inference-Header-Content-Length": "0"})
            assert answer.status == 200, answer
            return
        with Client(server.port2, self.path.removesuffix(CALL)) as client:
            answer = client.call("ModelInfer", self.data[5:])
            assert answer.raw_output_contents[0] == bytes(self.size)

    def cpu(self, server, folder):
        """us per request of the server's processes."""
        body = folder / "body"
        body.write_bytes(self.data)
        how = ["-c8", "-m4", "-H", "content-type: application/grpc", "-H",
               "te: trailers"] if self.grpc else [
                   "--h1", "-c8", "-H", "inference-header-content-length: 0"]
        pids = server.processes()
        before = process.cpu_seconds(pids)
        times = h2load(
            ["-D1", "-d", str(body), *how, "http://127.0.0.1:"
             f"{server.port2 if self.grpc else server.port}{self.path}"],
            folder / "h2load.log", self.name)
        cpu = process.cpu_seconds(pids) - before
        return cpu * 1e6 / len(times)


def rows():
    return [Row("REST, own model", "/own", 64, False),
            Row("REST, proxied", "/far", 64, False),
            Row("gRPC, own model", "/own", 64, True),
            Row("gRPC, own model 32 KiB", "/own", 1 << 15, True),
            Row("gRPC, proxied", "/grpc", 64, True),
            Row("REST, fallback", "/try", 64, False, "there"),
            Row("gRPC, fallback", "/try", 64, True, "there")]


def front(far, repository, key):
    peek = "inference_peek on;" if key == "model" else ""
    return Server(repository, http2=True, log_level="warn", http=f"""
    keepalive_requests 1000000000;
    limit_req_zone {KEYS[key]} zone=key:1m rate=1000000r/s;
    upstream far {{ server 127.0.0.1:{far.port}; keepalive 16; }}
    upstream far_grpc {{ server 127.0.0.1:{far.port2}; keepalive 64; }}
""", server=f"""
        limit_req zone=key burst=1000000 nodelay;
        location /own/ {{ inference infer; }}
        location /far/ {{
            {peek} proxy_http_version 1.1; proxy_set_header Connection "";
            proxy_pass http://far/;
        }}
        location /try/ {{
            inference infer; inference_intercept_errors on;
            error_page 404 = $fallback;
        }}
        set $fallback @rest;
        if ($content_type = application/grpc) {{ set $fallback @grpc; }}
        location @rest {{
            rewrite ^/try(/.*) $1 break; proxy_http_version 1.1;
            proxy_set_header Connection ""; proxy_pass http://far;
        }}
        location @grpc {{
            rewrite ^/try(/.*) $1 break; grpc_pass grpc://far_grpc;
        }}
        location /grpc/ {{
            {peek} rewrite ^/grpc(/.*) $1 break; grpc_pass grpc://far_grpc;
        }}
""").start()


def verdict(row, samples):
    pairs = list(zip(samples["uri"], samples["model"]))
    low, middle, high = statistics.quantiles(
        [model - uri for uri, model in pairs], n=4, method="inclusive")
    print(f"{row.name:<24} {statistics.median(x[0] for x in pairs):>10.1f} "
          f"{statistics.median(x[1] for x in pairs):>10.1f} "
          f"{middle:>8.2f} ({low:.2f} to {high:.2f})"
          f"{'' if middle <= TARGET_US else '  above the target'}",
          flush=True)


def run(words):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="inf-bench-"))
    (folder / "models").mkdir()
    models.identity(folder / "models", "bytes", [("IN", "UINT8", [-1])])
    shutil.copytree(folder / "models", folder / "far")
    models.identity(folder / "far", "there", [("IN", "UINT8", [-1])])
    chosen = [r for r in rows()
              if not words or any(w in r.name for w in words)]
    samples = {r: {key: [] for key in KEYS} for r in chosen}
    servers = []
    try:
        far = Server(folder / "far", http2=True, log_level="warn", http="""
    keepalive_requests 1000000000;""").start()
        servers.append(far)
        for number in range(STARTS):
            order = sorted(KEYS, reverse=number % 2 == 1)
            fronts = {}
            for key in order:
                fronts[key] = front(far, folder / "models", key)
                servers.append(fronts[key])
            for row in chosen:
                for server in fronts.values():
                    row.verify(server)
                for turn in range(ROUNDS):
                    for key in order[::-1 if turn % 2 else 1]:
                        samples[row][key].append(row.cpu(fronts[key], folder))
            for key in order:
                servers.pop().stop()
        print(f"limit_req by model beside limit_req by URI: CPU us per "
              f"request, {STARTS} starts of {ROUNDS} rounds; target "
              f"{TARGET_US:.0f} us more\n{'row':<24} {'$uri':>10} "
              f"{'by model':>10} {'more':>8}")
        for row in chosen:
            verdict(row, samples[row])
    finally:
        for server in servers:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    run(sys.argv[1:])
