"""perf_analyzer: its protocols, models, kinds of load and of memory."""

import json
import os

import pytest

from lib import models, perf_analyzer
from lib.server import BUILD, SANITIZER

HTTP, GRPC = ["-i", "http"], ["-i", "grpc"]
STREAM = [*GRPC, "--streaming", "--async"]
MEMORY = ["--shared-memory", "system", "--output-shared-memory-size", "4096"]
TRACE = ["--trace-level", "TIMESTAMPS", "--trace-rate", "5", "--trace-count",
         "3", "--log-frequency", "0"]

RUNS = {
    "http": ("plain", *HTTP),
    "http-async": ("plain", *HTTP, "--async", "-b", "4",
                   "--concurrency-range", "1:5:2"),
    "http-json": ("plain", *HTTP, "--input-tensor-format", "json",
                  "--output-tensor-format", "json"),
    "http-rate": ("plain", *HTTP, "--request-rate-range", "300",
                  "--request-distribution", "poisson"),
    "http-strings": ("strings", *HTTP, "--string-length", "20"),
    "http-shape": ("open", *HTTP, "--shape", "IN:1000"),
    "http-ensemble": ("ensemble", *HTTP, "-b", "2"),
    "http-memory": ("plain", *HTTP, *MEMORY),
    "http-memory-async": ("plain", *HTTP, *MEMORY, "--async", "-b", "8",
                          "--concurrency-range", "4"),
    "http-trace": ("plain", *HTTP, *TRACE),
    "grpc": ("plain", *GRPC),
    "grpc-async": ("plain", *GRPC, "--async", "-b", "4",
                   "--concurrency-range", "1:5:2"),
    "grpc-gzip": ("open", *GRPC, "--shape", "IN:5000",
                  "--grpc-compression-algorithm", "gzip"),
    "grpc-deflate": ("open", *GRPC, "--shape", "IN:5000",
                     "--grpc-compression-algorithm", "deflate"),
    "grpc-strings": ("strings", *GRPC, "--string-data", "words"),
    "grpc-ensemble": ("ensemble", *GRPC),
    "grpc-memory": ("plain", *GRPC, *MEMORY),
    "grpc-trace": ("plain", *GRPC, *TRACE),
    "stream": ("plain", *STREAM),
    "stream-many": ("plain", *STREAM, "--concurrency-range", "16"),
    "stream-memory": ("plain", *STREAM, *MEMORY),
}


def succeeded(server, model):
    """How many requests of the model did; none may have failed."""
    stats = server.get(f"/v2/models/{model}/stats").json()["model_stats"][0]
    assert int(stats["inference_stats"]["fail"]["count"]) == 0
    return int(stats["inference_stats"]["success"]["count"])


@pytest.fixture
def measure(server, tmp_path):
    """A function that runs the program against the server."""
    def run(model, *arguments):
        before = succeeded(server, model)
        port = server.port2 if "grpc" in arguments else server.port
        found = perf_analyzer.run(tmp_path, "-m", model, "-u",
                                  f"127.0.0.1:{port}", *arguments)
        assert succeeded(server, model) > before
        return found

    yield run
    assert "[error]" not in server.log_text()
    assert [o for o in os.listdir("/dev/shm")
            if o.startswith("IN_") or o == "OUT"] == []
    regions = server.get("/v2/systemsharedmemory/status")
    assert regions.json() == [], regions


@pytest.mark.parametrize("name", RUNS)
def test_runs(measure, name):
    measure(*RUNS[name])


@pytest.mark.parametrize("protocol", [HTTP, GRPC, STREAM],
                         ids=["http", "grpc", "stream"])
@pytest.mark.parametrize("memory", [[], MEMORY], ids=["", "memory"])
def test_sequences(measure, protocol, memory):
    measure("sequence", *protocol, *memory, "--sequence-length", "4",
            "--num-of-sequences", "2", "--concurrency-range", "2")


def test_sequences_one_after_the_other(measure):
    measure("sequence", *STREAM, "--sequence-length", "6",
            "--serial-sequences", "--sequence-id-range", "100:110",
            "--request-rate-range", "300")


def three_responses(folder):
    """Input data of the model repeat, in the program's form."""
    path = folder / "data.json"
    path.write_text(json.dumps({"data": [{
        "IN": {"content": [7, 8, 9], "shape": [3]},
        "DELAY": {"content": [0, 0, 0], "shape": [3]}, "WAIT": [0]}]}),
        encoding="utf-8")
    return str(path)


def test_decoupled_model(measure, tmp_path):
    """Each request has its responses and an empty final one."""
    export = tmp_path / "export.json"
    measure("repeat", *STREAM, "--input-data", three_responses(tmp_path),
            "--concurrency-range", "2", "--profile-export-file", str(export))
    requests = json.loads(export.read_text())["experiments"][0]["requests"]
    assert requests
    for request in requests:
        assert len(request["response_timestamps"]) == 4, request


def test_periodic_concurrency(server, tmp_path):
    """The next requests start when those before have had a response.

    With a period over 1 the program itself may abort: it takes the first
    response of a request for one after the final response of that before.
    """
    export = tmp_path / "export.json"
    perf_analyzer.say(
        "-m", "repeat", "-u", f"127.0.0.1:{server.port2}", *STREAM,
        "--input-data", three_responses(tmp_path),
        "--periodic-concurrency-range", "1:4:1", "--request-period", "1",
        "--profile-export-file", str(export))
    requests = json.loads(export.read_text())["experiments"][0]["requests"]
    assert len(requests) >= 4


def test_metrics_are_collected(server, measure):
    rows, said = measure(
        "plain", *HTTP, "--collect-metrics", "--verbose-csv",
        "--metrics-url", f"127.0.0.1:{server.port}/metrics",
        "--metrics-interval", "10")
    assert "Unable to parse" not in said, said
    for column in ("Avg GPU Utilization", "Avg GPU Power Usage",
                   "Max GPU Memory Usage", "Total GPU Memory"):
        assert rows[0][column].startswith("GPU-"), rows


@pytest.mark.skipif(bool(SANITIZER), reason="the program has no sanitizer")
def test_in_process(tmp_path):
    """It opens the library itself, and keeps the functions from others."""
    installed, repository = tmp_path / "installed", tmp_path / "models"
    (installed / "lib").mkdir(parents=True)
    (installed / "lib/libtritonserver.so").symlink_to(
        BUILD / "libtritonserver.so")
    (installed / "backends").symlink_to(BUILD / "backends")
    models.identity(repository, "plain", [("IN", "FP32", [16])])
    rows, _ = perf_analyzer.run(
        tmp_path, "-m", "plain", "--service-kind", "triton_c_api",
        "--triton-server-directory", installed, "--model-repository",
        repository)
    assert len(rows) == 1
