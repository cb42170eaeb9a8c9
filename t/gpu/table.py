#!/usr/bin/env python3
"""The table of figures that only a GPU gives, beside what the driver alone
takes in the same run (bare.c).

    python t/gpu/table.py        the driver of INF_GPU_DRIVER (fake or real)

With the fake driver every row runs and its figures mean nothing, which the
table says.  Figures also go to BUILD/gpu-table.json.  A row that cannot be
measured says why; the exit status is 1 if one failed that could be.
"""

import concurrent.futures
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from lib import cuda, gpu, models, process, wire            # noqa: E402
from lib.server import BACKENDS, BUILD, ROOT, Server        # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
KERNELS = HERE / "kernels.ptx"
POST = ROOT / "t/bench/post.lua"
DIGITS = ROOT / "examples/cuda/models/digits_cuda"
QUICK = bool(os.environ.get("QUICK"))
SECONDS = 1 if QUICK else 4
SMALL = 64
MIB = 1 << 20
SPIN_CYCLES = 100_000_000       # of the GPU's clock: tens of milliseconds
NO_GPU = 77

ABOVE_LAUNCH_US = 15            # targets
OF_THE_COPY = 0.8


class NotMeasured(Exception):
    """Why a row has no figure; it is no failure."""


# ---- models

def kernel_model(folder, name, kernel, *, inputs=(("IN", "UINT8", [-1]),),
                 outputs=(("OUT", "UINT8", [SMALL]),), count=1):
    models.write_model(
        folder, name, f'name: "{name}"\nbackend: "cuda"\n'
        + models.io_block("input", inputs) + models.io_block("output", outputs)
        + f"instance_group {{ kind: KIND_GPU gpus: [ 0 ] count: {count} }}\n"
        + models.parameter_block({"kernel_1": kernel}),
        files={1: {"model.ptx": KERNELS.read_bytes()}})


def fill(folder):
    kernel_model(folder, "empty", "empty<<<1, 1>>>(OUT)")
    kernel_model(folder, "first", "first<<<1, 1>>>(IN, OUT)")
    for count in 1, 2:
        kernel_model(folder, f"spin{count}",
                     f"spin<<<1, 1>>>(OUT, long({SPIN_CYCLES}))", count=count)
    if DIGITS.is_dir():
        shutil.copytree(DIGITS, folder / DIGITS.name)


def body_of(model, size):
    """(headers, body) of a binary request with size bytes of IN."""
    head = json.dumps(
        {"inputs": [{"name": "IN", "datatype": "UINT8", "shape": [size],
                     "parameters": {"binary_data_size": size}}],
         "outputs": [{"name": "OUT", "parameters": {"binary_data": True}}]},
        separators=(",", ":")).encode()
    return {"Content-Type": "application/octet-stream",
            "Inference-Header-Content-Length": str(len(head))}, \
        head + bytes(size)


def digits_body():
    """One picture; a fraction of the size as JSON."""
    size = 64
    head = json.dumps({"inputs": [
        {"name": "image", "datatype": "FP32", "shape": [1, 8, 8],
         "parameters": {"binary_data_size": 4 * size}}]},
        separators=(",", ":")).encode()
    return {"Content-Type": "application/octet-stream",
            "Inference-Header-Content-Length": str(len(head))}, \
        head + bytes(4 * size)


# ---- measuring

def wrk(server, model, request, concurrency):
    """The figures of post.lua for one model."""
    if shutil.which("wrk") is None:
        raise NotMeasured("no wrk on this machine")
    headers, body = request
    with tempfile.NamedTemporaryFile() as file:
        file.write(body)
        file.flush()
        env = dict(os.environ, BENCH_BODY=file.name, BENCH_HEADERS="\n".join(
            f"{k}: {v}" for k, v in headers.items()))
        out = subprocess.run(
            ["wrk", f"-t{min(concurrency, 4)}", f"-c{concurrency}",
             f"-d{SECONDS}s", "--timeout", "30s", "-s", str(POST),
             f"http://127.0.0.1:{server.port}/v2/models/{model}/infer"],
            env=env, capture_output=True, text=True, check=True).stdout
    found = json.loads(out[out.rindex("{"):])
    if found["errors"] or not found["requests"]:
        raise RuntimeError(f"{model}: {out}")
    return found


def reason(server, model):
    """Why a model is not ready."""
    index = server.post("/v2/repository/index", b"{}").json()
    return next((row.get("reason", row.get("state", "")) for row in index
                 if row["name"] == model), "no such model")


def infer(connection, model, request):
    headers, body = request
    began = time.perf_counter()
    answer = connection.request("POST", f"/v2/models/{model}/infer", body,
                                headers)
    took = time.perf_counter() - began
    if answer.status != 200:
        raise RuntimeError(f"{model}: {answer}")
    return took


def executions(server, model):
    """(executions, their ns) of a model's statistics so far."""
    row = server.get(f"/v2/models/{model}/stats").json()["model_stats"][0]
    parts = row["inference_stats"]
    return row["execution_count"], sum(
        parts[p]["ns"] for p in ("compute_input", "compute_infer",
                                 "compute_output"))


# ---- rows: each returns (what, figures), or raises

def latency_through_nginx(server, bare):
    found = wrk(server, "empty", body_of("empty", SMALL), 1)
    return {"p50_us": found["p50_us"],
            "above_launch_us": found["p50_us"] - bare["launch_us"]}


def latency_in_the_core(server, bare):
    del server                      # a program that embeds another core
    with tempfile.TemporaryDirectory() as folder:
        kernel_model(pathlib.Path(folder), "empty", "empty<<<1, 1>>>(OUT)")
        out = subprocess.run(
            [BUILD / "gpu_core", folder, BACKENDS, "empty", str(SMALL),
             "2000" if QUICK else "20000"], env=environment(),
            capture_output=True, text=True, check=False)
    if out.returncode:
        raise RuntimeError(out.stdout + out.stderr)
    found = json.loads(out.stdout[out.stdout.rindex("{"):])
    above = found["p50_us"] - bare["launch_us"]
    return {**found, "above_launch_us": above,
            "above_request_us": found["p50_us"] - bare["request_us"],
            "met": above <= ABOVE_LAUNCH_US}


def host_to_device(size):
    def row(server, bare):
        request = body_of("first", size * MIB)
        times = []
        with server.wire(60) as connection:
            for _ in range(3):
                infer(connection, "first", request)
            count, ns = executions(server, "first")
            for _ in range(5 if QUICK else 20):
                times.append(infer(connection, "first", request))
            more, later = executions(server, "first")
        copy = size * MIB * (more - count) / max(later - ns, 1)
        pinned = bare["copy_gbs"][str(size)]
        return {"copy_gbs": copy, "bare_gbs": pinned, "ratio": copy / pinned,
                "whole_gbs": size * MIB / statistics.median(times) / 1e9,
                **({"met": copy / pinned >= OF_THE_COPY}
                   if size >= 16 else {})}
    return row


def digits_rate(concurrency):
    def row(server, bare):
        del bare
        if server.status(f"/v2/models/{DIGITS.name}/ready") != 200:
            raise NotMeasured(reason(server, DIGITS.name))
        found = wrk(server, DIGITS.name, digits_body(), concurrency)
        return {"requests_s": found["requests"] * 1e6 / found["duration_us"],
                "p50_us": found["p50_us"], "p99_us": found["p99_us"]}
    return row


def overlap(server, bare):
    del bare
    request = body_of("spin", SMALL)

    def at_once(model, count):
        def one(_):
            with server.wire(60) as connection:
                infer(connection, model, request)

        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            began = time.perf_counter()
            list(pool.map(one, range(count)))
            return time.perf_counter() - began

    def median(model, count):
        at_once(model, count)
        return statistics.median(at_once(model, count) for _ in range(5))

    one, turns, both = median("spin1", 1), median("spin1", 2), \
        median("spin2", 2)
    return {"one_ms": one * 1e3, "two_on_one_ms": turns * 1e3,
            "two_on_two_ms": both * 1e3, "met": both < (one + turns) / 2}


ROWS = [
    ("empty kernel through nginx", latency_through_nginx),
    ("empty kernel inside the core", latency_in_the_core),
    *((f"host to device, {size} MiB", host_to_device(size))
      for size in (1, 16, 64)),
    *((f"digits, concurrency {c}", digits_rate(c)) for c in (1, 32, 256)),
    ("two kernels on two instances", overlap)]


def wait_for_models(server):
    """Until each has loaded, or has failed to; digits needs NVRTC."""
    def settled():
        index = server.post("/v2/repository/index", b"{}").json()
        return len(index) > 3 and all(
            row.get("state") in ("READY", "UNAVAILABLE") and
            (row["state"] == "READY" or row.get("reason")) for row in index)
    if not process.wait_until(settled, 60):
        sys.exit("models do not load:\n" + server.log_text()[-4000:])


def environment():
    env = dict(os.environ)
    env.update(e.split("=", 1) for e in gpu.env())
    return env


def kernels():
    """The fake driver runs those of digits on the host, where it can."""
    return {} if gpu.REAL or shutil.which("g++") is None \
        else {"kernels": cuda.host_kernels()}


def bare_figures():
    out = subprocess.run([BUILD / "gpu_bare", KERNELS], env=environment(),
                         capture_output=True, text=True, check=False)
    if out.returncode == NO_GPU:
        print(f"skipped: {out.stdout.strip()}")
        sys.exit(0)
    if out.returncode:
        sys.exit(f"gpu_bare: {out.stdout}{out.stderr}")
    return json.loads(out.stdout[out.stdout.index("{"):])


def figures(row, fake):
    met = "" if fake or "met" not in row \
        else "  target met" if row["met"] else "  TARGET MISSED"
    return "  ".join(f"{k} {v:.2f}" for k, v in row.items()
                     if k != "met") + met


def main():
    process.become_subreaper()
    if not (BACKENDS / "cuda/libtriton_cuda.so").exists():
        print("skipped: backend cuda is not built")
        return
    bare = bare_figures()
    print(f"device: {bare['device']}")
    if bare["fake"]:
        print("THE FAKE DRIVER: every row runs, no figure means anything")
    print(f"{'launch and wait, driver alone':<30} {bare['launch_us']:.2f} us")
    print(f"{'the same with 64 B in and out':<30} {bare['request_us']:.2f} us")
    for size, speed in bare["copy_gbs"].items():
        print(f"{f'pinned copy, {size} MiB':<30} {speed:.2f} GB/s")

    results, failed = {"bare": bare}, False
    with Server(fill, workers=2, log_level="warn",
                parts="health metadata config infer statistics repository",
                http="    inference_max_body 128m;\n"
                     "    keepalive_requests 1000000000;\n",
                inference_env=gpu.env(**kernels())).start("live") as server:
        wait_for_models(server)
        for name, row in ROWS:
            try:
                results[name] = row(server, bare)
                print(f"{name:<30} {figures(results[name], bare['fake'])}",
                      flush=True)
            except NotMeasured as e:
                print(f"{name:<30} not measured: {e}", flush=True)
            except (RuntimeError, OSError, ValueError,
                    subprocess.SubprocessError) as e:
                failed = True
                print(f"{name:<30} FAILED: {e}", flush=True)
    (BUILD / "gpu-table.json").write_text(json.dumps(results, indent=1))
    sys.exit(failed)


if __name__ == "__main__":
    main()
