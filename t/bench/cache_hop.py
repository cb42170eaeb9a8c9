#!/usr/bin/env python3
"""The cost of a hop through nginx's own cache in front of the module, as
conf.d/cache.conf has it.

One server with the identity backend, asked in interleaved rounds: "direct",
without a hop; "proxy", through a hop that caches nothing; "miss", through the
cache with requests that are all different; "hit", with one that is always the
same.  Medians of latency and of the server's CPU per request, and the
difference to "direct" in each round.

    python t/bench/cache_hop.py [BYTES ...]     sizes of the input (64 4096)

QUICK=1: fewer rounds.
"""

import json
import pathlib
import random
import statistics
import sys
import tempfile
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from lib import models, snippets                            # noqa: E402
from lib.server import Server, free_port                    # noqa: E402
import cache                                                # noqa: E402

ROUNDS = 3 if cache.QUICK else 11
PLAIN = """
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass         http://unix:{folder}/sock;
            proxy_http_version 1.1;
            proxy_set_header   Connection "";
            client_body_buffer_size 1m;
        }}
    }}
"""


def start(folder, front, plain):
    text = snippets.read("cache", {8000: front})
    text = text.replace("/var/lib/nginx/inference", f"{folder}/files")
    text = text.replace("/run/nginx-inference-cached.sock", f"{folder}/sock")
    return Server(
        lambda repository: models.identity(repository, "plain",
                                           [("IN", "UINT8", [-1])]),
        http=text + PLAIN.format(port=plain, folder=folder), session=False)


def request(size, folder):
    """(file, length of its JSON)"""
    header = json.dumps({
        "inputs": [{"name": "IN", "datatype": "UINT8", "shape": [size],
                    "parameters": {"binary_data_size": size}}],
        "outputs": [{"name": "OUT", "parameters": {"binary_data": True}}]},
        separators=(",", ":")).encode()
    body = folder / "request"
    body.write_bytes(header + random.Random(size).randbytes(size))
    return body, len(header)


def compare(size, folder, ways):
    body, head = request(size, folder)
    samples = {way: [] for way in ways}
    for n in range(ROUNDS + 1):             # the first one warms up
        for way, server in ways.items():
            rate, cpu = cache.measure(server, "plain", body, head,
                                      way == "miss", 1)
            if n > 0:
                samples[way].append((1e6 / rate, cpu))
    for way, found in samples.items():
        more = [tuple(a - b for a, b in zip(x, y))
                for x, y in zip(found, samples["direct"])]
        print(f"{size:>8} B  {way:<7}", *(
            f"{statistics.median(x[k] for x in found):8.1f} us {what}"
            f" ({statistics.median(x[k] for x in more):+7.1f})"
            for k, what in enumerate(("latency", "CPU"))))


def main():
    sizes = [int(s) for s in sys.argv[1:]] or [64, 4096]
    print("conf.d/cache.conf, one request at a time; in brackets: beyond"
          " direct")
    with tempfile.TemporaryDirectory(prefix="inf-bench-") as name:
        folder = pathlib.Path(name)
        front, plain = free_port(), free_port()
        with start(folder, front, plain) as server:
            def at(port):
                return types.SimpleNamespace(port=port,
                                             processes=server.processes)
            for size in sizes:
                compare(size, folder, {
                    "direct": server, "proxy": at(plain), "miss": at(front),
                    "hit": at(front)})


if __name__ == "__main__":
    main()
