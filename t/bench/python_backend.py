#!/usr/bin/env python3
"""Models in Python beside NVIDIA's server with its own python backend.

The same model.py on both: "empty" gives its input back, "chain" asks "empty"
by a request of its own (BLS) and answers with that.  Each server has an
interpreter of the same version; the peer's has numpy 1, which its stub needs.
Interleaved rounds, medians; latency and CPU (of the whole process tree, with
the interpreters) per request.

    python t/bench/python_backend.py [WORDS]    only cases whose name holds one

QUICK=1: two rounds of one second.  Targets: half of the peer's p50 and CPU at
64 bytes, a third at 1 MiB.
"""

import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from lib import models, prebuilt, process                   # noqa: E402
from lib.server import BACKENDS, BUILD, Server              # noqa: E402
from peer import Peer                                       # noqa: E402
from run import (ROUNDS, SECONDS, binary, measure, median,  # noqa: E402
                 run_wrk)

IO = (models.io_block("input", [("IN", "UINT8", [-1])])
      + models.io_block("output", [("OUT", "UINT8", [-1])]))

EMPTY = """\
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor(
            "OUT", pb.get_input_tensor_by_name(r, "IN").as_numpy())])
            for r in requests]
"""

CHAIN = """\
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse(pb.InferenceRequest(
            model_name="empty", requested_output_names=["OUT"],
            inputs=r.inputs()).exec().output_tensors()) for r in requests]
"""

# name, model, bytes, concurrencies, target
CASES = [("empty 64 B", "empty", 64, (1, 32), 1 / 2),
         ("empty 1 MiB", "empty", 1 << 20, (1, 32), 1 / 3),
         ("zero copy 1 MiB", "zero_copy", 1 << 20, (1, 32), 1 / 3),
         ("chain 64 B", "chain", 64, (1, 32), 1 / 2),
         ("chain 1 MiB", "chain", 1 << 20, (1,), 1 / 3)]


def fill(repository):
    prebuilt.model(repository, "empty", IO, EMPTY)
    prebuilt.model(repository, "chain", IO, CHAIN)
    prebuilt.model(repository, "zero_copy", IO + models.parameter_block(
        {"ZERO_COPY_INPUTS": "yes"}), EMPTY)


def figures(m):
    return f" {m['rps']:>7.0f} {m['p50']:>7.0f} {m['p99']:>7.0f}" \
        f" {m['cpu']:>7.0f} |"


def compare(case, servers, body):
    name, model, size, concurrencies, target = case
    work = binary(name, size, concurrencies)
    work.path = f"/v2/models/{model}/infer"
    body.write_bytes(work.body)
    for server in servers.values():
        work.verify(server.port)
    for concurrency in concurrencies:
        samples = {who: [] for who in servers}
        for _ in range(ROUNDS):
            for who, server in servers.items():
                samples[who].append(measure(run_wrk, server, work.path, work,
                                            concurrency, body))
        m = {who: median(s) for who, s in samples.items()}
        p50, cpu = (m["ours"][k] / m["peer"][k] for k in ("p50", "cpu"))
        reached = "reached" if max(p50, cpu) <= target else "missed"
        print(f"{name:<16} {concurrency:>2} |{figures(m['ours'])}"
              f"{figures(m['peer'])} {p50:>5.2f}x {cpu:>5.2f}x"
              f" {target:>5.2f}x {reached}", flush=True)


def run(words):
    missing = prebuilt.missing()
    if missing:
        sys.exit(missing)
    with tempfile.TemporaryDirectory(prefix="inf-bench-") as name:
        folder = pathlib.Path(name)
        repository = folder / "models"
        repository.mkdir()
        fill(repository)
        path = f"{(BUILD / 'venv/bin').absolute()}:/usr/bin:/bin"
        with Server(repository, log_level="warn", backends=BACKENDS,
                    inference_env=[f'"PATH={path}"'],
                    http="    keepalive_requests 1000000000;") as ours:
            peer = Peer(repository, folder, backends=prebuilt.folder(),
                        env=dict(os.environ, PATH=f"{prebuilt.PEER}"
                                 "/python/bin:/usr/bin:/bin"))
            try:
                print(f"{ROUNDS} interleaved rounds of {SECONDS} s, medians; "
                      "times and CPU per request in us\n"
                      f"{'case':<16} {'c':>2} |" + "".join(
                          f" {w:>7} {'p50':>7} {'p99':>7} {'CPU':>7} |"
                          for w in ("ours/s", "peer/s"))
                      + f" {'p50':>6} {'CPU':>6} {'target':>6}")
                for case in CASES:
                    if not words or any(w in case[0] for w in words):
                        compare(case, {"ours": ours, "peer": peer},
                                folder / "request")
            finally:
                peer.stop()


if __name__ == "__main__":
    process.become_subreaper()
    run(sys.argv[1:])
