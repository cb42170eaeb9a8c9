#!/usr/bin/env python3
"""Side by side with the real peer: same machine, same backend, same run.

Per scenario the servers are measured in interleaved rounds; the table shows
medians.  CPU is that of the server's whole process tree.  The third server is
stock nginx: it answers `return 200` to the same request, or, from 1 MiB on,
receives it into memory and sends as many bytes from the page cache.

    python t/bench/run.py [WORDS]    only scenarios whose name holds a word

QUICK=1: two rounds of one second.  Results also go to build/bench.json.
"""

import json
import os
import pathlib
import random
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from lib import models, process, wire                       # noqa: E402
from lib.server import NGINX, ROOT, Server, free_port       # noqa: E402
from peer import Peer                                       # noqa: E402

QUICK = bool(os.environ.get("QUICK"))
ROUNDS = 2 if QUICK else 5
SECONDS = 1 if QUICK else 2
LARGE = 1 << 20
LUA = pathlib.Path(__file__).with_name("post.lua")

NGINX_CONF = """\
daemon off; user root; worker_processes 1; pid {dir}/nginx.pid;
error_log {dir}/nginx.log; events {{ }}
http {{
    access_log off; client_max_body_size 0; keepalive_requests 1000000000;
    client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
    fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
    open_file_cache max=16;
    server {{
        listen 127.0.0.1:{port};
        location / {{ return 200 "{{}}"; }}
        location /bytes/ {{
            root {dir}; sendfile on; client_body_buffer_size 32m;
            mirror /taken;              # reads the body into memory
            error_page 405 =200 $uri;
        }}
        location = /taken {{ internal; return 200; }}
    }}
}}
"""


class Stock:
    """Stock nginx without the module."""

    def __init__(self, folder):
        self.folder = folder
        self.port = free_port()
        (folder / "bytes").mkdir()
        conf = folder / "stock.conf"
        conf.write_text(NGINX_CONF.format(dir=folder, port=self.port))
        self.process = subprocess.Popen(
            [NGINX, "-p", str(folder), "-c", str(conf),
             "-e", str(folder / "nginx.log")], start_new_session=True,
            stdin=subprocess.DEVNULL)
        process.wait_until(self._up, 10)

    def _up(self):
        try:
            return wire.fetch(self.port, "GET", "/").status == 200
        except OSError:
            return False

    def path_for(self, size):
        """Where a request is answered with size bytes."""
        if size < LARGE:
            return "/"
        file = self.folder / "bytes" / str(size)
        if not file.exists():
            file.write_bytes(bytes(size))
        return f"/bytes/{size}"

    def processes(self):
        return [self.process.pid] + process.descendants(self.process.pid)

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Scenario:
    def __init__(self, name, model, header, tail, concurrencies):
        self.name = name
        self.model = model
        self.tail = tail
        self.concurrencies = [8 if QUICK else c for c in concurrencies]
        self.concurrencies = sorted(set(self.concurrencies))
        self.body = json.dumps(header, separators=(",", ":")).encode()
        self.headers = {"Content-Type": "application/octet-stream"}
        if tail:
            self.headers["Inference-Header-Content-Length"] = \
                str(len(self.body))
        self.body += tail
        self.path = f"/v2/models/{model}/infer"

    def verify(self, port):
        """The server's answer must be the tensor that was sent."""
        answer = wire.fetch(port, "POST", self.path, self.body, self.headers)
        assert answer.status == 200, answer
        head, tail = answer.split()
        if self.tail:
            assert tail == self.tail, "wrong bytes came back"
        else:
            sent = json.loads(self.body)["inputs"][0]["data"]
            got = head["outputs"][0]["data"]
            pack = f"{len(sent)}f"
            assert struct.pack(pack, *sent) == struct.pack(pack, *got)


def binary(name, size, concurrencies):
    header = {"inputs": [{"name": "IN", "datatype": "UINT8", "shape": [size],
                          "parameters": {"binary_data_size": size}}],
              "outputs": [{"name": "OUT",
                           "parameters": {"binary_data": True}}]}
    data = random.Random(size).randbytes(size)
    return Scenario(name, "bytes", header, data, concurrencies)


def floats(name, count, concurrencies):
    rng = random.Random(count)
    data = [round(rng.gauss(0, 1), 6) for _ in range(count)]
    header = {"inputs": [{"name": "IN", "datatype": "FP32", "shape": [count],
                          "data": data}]}
    return Scenario(name, "floats", header, b"", concurrencies)


def scenarios():
    few, many = [1, 4, 8], [1, 8, 32]
    return [binary("64 B binary", 64, many),
            binary("4 KiB binary", 4096, many),
            binary("1 MiB binary", 1 << 20, few + [32]),
            binary("16 MiB binary", 16 << 20, few + [32]),
            floats("16 floats JSON", 16, many),
            floats("4096 floats JSON", 4096, many)]


# ---- one measurement

def wrk(port, path, scenario, concurrency, body):
    """The figures that post.lua prints; fails if a request did."""
    env = dict(os.environ, BENCH_BODY=str(body), BENCH_HEADERS="\n".join(
        f"{k}: {v}" for k, v in scenario.headers.items()))
    out = subprocess.run(
        ["wrk", "-t1", f"-c{concurrency}", f"-d{SECONDS}s", "--timeout",
         "30s", "-s", str(LUA), f"http://127.0.0.1:{port}{path}"],
        env=env, capture_output=True, text=True, check=True).stdout
    found = json.loads(out[out.rindex("{"):])
    if found["errors"]:
        raise RuntimeError(f"{scenario.name}: {found['errors']} errors\n{out}")
    return found


def run_wrk(port, path, scenario, concurrency, body):
    found = wrk(port, path, scenario, concurrency, body)
    return (found["requests"], found["duration_us"] / 1e6,
            found["p50_us"], found["p99_us"])


def quantiles(times):
    """p50 and p99, in the unit of times."""
    times = sorted(times)
    return times[len(times) // 2], times[len(times) * 99 // 100]


def h2load(arguments, log, name):
    """Microseconds of each request, all of them answered 200.  h2load begins
    nothing if it gets no connection in its time, and is run again; ten times in
    a row, nobody listens."""
    for _ in range(10):
        log.unlink(missing_ok=True)
        out = subprocess.run(
            ["h2load", "-t1", *arguments, "--log-file", str(log)],
            capture_output=True, text=True, check=True).stdout
        if ", 0 started, " not in out:
            break

    times = []
    for line in log.read_text().splitlines():
        _, status, micros = line.split()
        if status != "200":
            raise RuntimeError(f"{name}: status {status}\n{out}")
        times.append(int(micros))
    if not times:
        raise RuntimeError(f"{name}: no answer of {arguments[-1]}\n{out}")
    return times


def run_h2load(port, path, scenario, concurrency, body):
    """HTTP/1.1 by another load generator: a second opinion."""
    headers = [w for k, v in scenario.headers.items()
               for w in ("-H", f"{k}: {v}")]
    times = h2load(
        ["--h1", f"-c{concurrency}", f"-D{SECONDS}", "-d", str(body),
         *headers, f"http://127.0.0.1:{port}{path}"],
        body.with_suffix(".log"), scenario.name)
    return (len(times), SECONDS, *quantiles(times))


def measure(tool, server, path, scenario, concurrency, body):
    pids = server.processes()
    before = process.cpu_seconds(pids)
    requests, seconds, p50, p99 = tool(server.port, path, scenario,
                                       concurrency, body)
    cpu = process.cpu_seconds(pids) - before
    return {"rps": requests / seconds, "p50": p50, "p99": p99,
            "cpu": cpu * 1e6 / max(requests, 1)}


def median(samples):
    return {k: statistics.median(s[k] for s in samples) for k in samples[0]}


# ---- the table

COLUMNS = (f"{'scenario':<22} {'c':>2} |"
           + "".join(f" {w:>9} {'p50':>7} {'p99':>7} {'CPU':>8} |"
                     for w in ("ours r/s", "peer r/s"))
           + f" {'nginx r/s':>9} {'CPU':>8}"
           + f" | {'r/s':>6} {'CPU':>6} {'/nginx':>6}")


def figures(m, latency=True):
    lat = f" {m['p50']:>7.0f} {m['p99']:>7.0f}" if latency else ""
    return f" {m['rps']:>9.0f}{lat} {m['cpu']:>8.1f} |"


def row(name, concurrency, m):
    ours, peer, stock = m["ours"], m["peer"], m["nginx"]
    return (f"{name:<22} {concurrency:>2} |" + figures(ours) + figures(peer)
            + figures(stock, latency=False)
            + f" {ours['rps'] / peer['rps']:>5.2f}x"
            f" {peer['cpu'] / ours['cpu']:>5.2f}x"
            f" {ours['cpu'] / max(stock['cpu'], 0.01):>5.2f}x")


def compare(name, tool, servers, scenario, concurrency, body):
    """Interleaved rounds of one scenario: {server: medians}."""
    samples = {who: [] for who in servers}
    for _ in range(ROUNDS):
        for who, server in servers.items():
            path = scenario.path if who != "nginx" \
                else server.path_for(len(scenario.body))
            samples[who].append(measure(tool, server, path, scenario,
                                        concurrency, body))
    medians = {who: median(s) for who, s in samples.items()}
    print(row(name, concurrency, medians), flush=True)
    return {"scenario": name, "concurrency": concurrency, **medians}


def memory(servers):
    return {who: sum(map(process.pss_bytes, s.processes())) / 2**20
            for who, s in servers.items()}


def longest_turn(server):
    """Of the event loops of ours, in ms and by their own word."""
    text = wire.fetch(server.port, "GET", "/metrics").body.decode()
    found = re.search(r"^nginx_inference_longest_turn_us (.*)$", text,
                      re.MULTILINE)
    return float(found[1]) / 1e3 if found else float("nan")


def fill(repository):
    models.identity(repository, "bytes", [("IN", "UINT8", [-1])])
    models.identity(repository, "floats", [("IN", "FP32", [-1])])


def run(words):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="inf-bench-"))
    repository = folder / "models"
    repository.mkdir()
    fill(repository)
    servers = {}
    try:
        servers["ours"] = Server(
            repository, workers=int(os.environ.get("WORKERS", "1")),
            log_level="warn", parts="health metadata config infer metrics",
            http="    keepalive_requests 1000000000;").start()
        servers["peer"] = Peer(repository, folder)
        servers["nginx"] = Stock(folder)
        start = memory(servers)
        results = []
        print(f"{ROUNDS} interleaved rounds of {SECONDS} s, medians; "
              "latencies and CPU per request in µs\n" + COLUMNS)
        for scenario in scenarios():
            if words and not any(w in scenario.name for w in words):
                continue
            for who in ("ours", "peer"):
                scenario.verify(servers[who].port)
            body = folder / "request"
            body.write_bytes(scenario.body)
            for concurrency in scenario.concurrencies:
                results.append(compare(scenario.name, run_wrk, servers,
                                       scenario, concurrency, body))
            if len(scenario.body) < LARGE:
                results.append(compare(scenario.name + " h2load", run_h2load,
                                       servers, scenario, 8, body))
        end = memory(servers)
        print("r/s: ours / peer; CPU: peer / ours; /nginx: our CPU / stock "
              "nginx's")
        print("memory MiB at start and end: " + ", ".join(
            f"{who} {start[who]:.0f} {end[who]:.0f}" for who in servers))
        turn = longest_turn(servers["ours"])
        print(f"longest turn of an event loop for one request: "
              f"{turn:.2f} ms")
        (ROOT / "build" / "bench.json").write_text(json.dumps(
            {"time": time.strftime("%F %T"), "rounds": ROUNDS,
             "seconds": SECONDS, "rows": results,
             "longest_turn_ms": turn,
             "memory_mib": {"start": start, "end": end}}, indent=1))
    finally:
        for server in servers.values():
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    run(sys.argv[1:])
