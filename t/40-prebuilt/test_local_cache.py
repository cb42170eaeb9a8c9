"""NVIDIA's prebuilt local cache, unmodified, and ours beside it: through
nginx, and under NVIDIA's server program, which shows statistics and metrics."""

import contextlib
import os
import re
import subprocess

import numpy
import pytest
import tritonclient.grpc
import tritonclient.http as triton

from lib import backends, models, prebuilt, process, wire
from lib.server import free_port

MISSING = prebuilt.missing()
pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)


def fill(repository):
    for name, cached in (("one", True), ("plain", False)):
        models.write_model(
            repository, name, f'name: "{name}"\nbackend: "counting"\n'
            + models.io_block("input", [("IN", "FP32", [-1])])
            + models.io_block("output", [("OUT", "FP32", [-1]),
                                         ("COUNT", "INT64", [1])])
            + (models.parameter_block({"fail_first": 1}) if cached else "")
            + ("response_cache { enable: true }\n" if cached else ""))


def make(make_server, settings):
    return make_server(
        fill, backends=backends.build("counting"),
        http=f"    inference_cache_directory {prebuilt.caches()};\n"
             f"    inference_response_cache local {settings};\n")


def ask(client, values, model="one", module=triton):
    value = numpy.array(values, dtype=numpy.float32)
    tensor = module.InferInput("IN", value.shape, "FP32")
    tensor.set_data_from_numpy(value)
    answer = client.infer(model, [tensor])
    assert numpy.array_equal(answer.as_numpy("OUT"), value)
    return int(answer.as_numpy("COUNT")[0])


def test_the_prebuilt_cache_serves_through_nginx(make_server):
    server = make(make_server, "size=1m")
    with open(f"/proc/{server.core()}/maps", encoding="utf-8") as maps:
        mapped = maps.read()
    assert "libtritoncache_local.so" in mapped
    assert "nvidia_pytriton.libs/libtritonserver" not in mapped
    with triton.InferenceServerClient(server.url) as client:
        with pytest.raises(triton.InferenceServerException,
                           match="the model fails at first"):
            ask(client, [1])
        assert [ask(client, [1]) for _ in range(3)] == [2, 2, 2]
        assert [ask(client, [n]) for n in (1, 2, 1, 2)] == [2, 3, 2, 3]
        large = list(range(50000))
        assert ask(client, large) == ask(client, large) == 4


def test_the_prebuilt_cache_gives_up_the_oldest(make_server):
    server = make(make_server, "size=20k")
    with triton.InferenceServerClient(server.url) as client:
        with pytest.raises(triton.InferenceServerException):
            ask(client, [0])
        first = [ask(client, [n] * 1000) for n in range(8)]
        assert ask(client, [7] * 1000) == first[7]
        assert ask(client, [0] * 1000) > first[7]
        # an answer that no cache of that size could hold
        assert ask(client, [1] * 10000) < ask(client, [1] * 10000)
    server.wait_log("model=one version=1: response cache:"
                    " Failed to insert key: ")


def test_its_own_words_are_logged_when_it_cannot_start(make_server):
    server = make(make_server, "colour=red")
    server.wait_log("models are served without a cache: response cache"
                    ' "local": .*size')
    with triton.InferenceServerClient(server.url) as client:
        assert [ask(client, [1], "plain") for _ in range(2)] == [1, 2]


@contextlib.contextmanager
def front_end(folder, *options):
    """(HTTP, gRPC, metrics) ports of NVIDIA's program over our library."""
    (folder / "models").mkdir()
    fill(folder / "models")
    ports = [free_port() for _ in range(3)]
    log = folder / "log"
    with open(log, "wb") as out:
        server = subprocess.Popen(
            [str(prebuilt.front_end()),
             "--model-repository", str(folder / "models"),
             "--backend-directory", str(backends.build("counting")),
             "--http-address", "127.0.0.1", "--http-port", str(ports[0]),
             "--grpc-address", "127.0.0.1", "--grpc-port", str(ports[1]),
             "--metrics-port", str(ports[2]), *options],
            env=os.environ, stdin=subprocess.DEVNULL, stdout=out,
            stderr=subprocess.STDOUT)

    def ready():
        try:
            return wire.fetch(ports[0], "GET", "/v2/health/ready").status \
                == 200
        except OSError:
            return server.poll() is not None

    try:
        assert process.wait_until(ready, 30, 0.1) and server.poll() is None, \
            log.read_text()
        yield ports
        server.terminate()
        assert server.wait(40) == 0, log.read_text()
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()


def metric(text, name):
    """Value of the series of that name, of model one if it has a model."""
    found = re.search(rf'^{name}(?:{{model="one",version="1"}})? (\S+)$',
                      text, re.M)
    assert found, f"{name} is not in\n{text}"
    return float(found[1])


@pytest.mark.parametrize("built_in", [True, False])
def test_statistics_and_metrics_count_hits_and_misses(tmp_path, built_in):
    folder = tmp_path / "none" if built_in else prebuilt.caches()
    with front_end(tmp_path, "--cache-directory", str(folder),
                   "--cache-config", "local,size=1048576") as ports:
        with triton.InferenceServerClient(f"127.0.0.1:{ports[0]}") as client:
            with pytest.raises(triton.InferenceServerException):
                ask(client, [0])
            assert [ask(client, [n]) for n in (1, 2, 1, 1)] == [2, 3, 2, 2]

            def counted():
                """A backend reports after it has answered."""
                told = client.get_inference_statistics("one")
                told = told["model_stats"][0]
                return told["execution_count"] == 3 and told \
                    ["inference_stats"]["success"]["count"] == 4 and told

            told = process.wait_until(counted, 10)
            assert told, client.get_inference_statistics("one")
            plain = client.get_inference_statistics("plain")["model_stats"][0]
        with tritonclient.grpc.InferenceServerClient(
                f"127.0.0.1:{ports[1]}") as client:
            assert ask(client, [2], module=tritonclient.grpc) == 3

        stats = told["inference_stats"]
        assert {k: stats[k]["count"] for k in (
            "success", "fail", "queue", "compute_infer", "cache_hit",
            "cache_miss")} == {
                "success": 4, "fail": 1, "queue": 4, "compute_infer": 2,
                "cache_hit": 2, "cache_miss": 3}
        assert told["inference_count"] == 2
        assert told["execution_count"] == 3
        assert stats["cache_hit"]["ns"] > 0 and stats["cache_miss"]["ns"] > 0
        assert plain["inference_stats"]["cache_miss"]["count"] == 0

        def text():
            return wire.fetch(ports[2], "GET", "/metrics").body.decode()

        # the prebuilt cache refreshes its own once a second
        assert process.wait_until(
            lambda: metric(text(), "nv_cache_num_hits") == 3, 10), text()
        shown = text()
        assert metric(shown, "nv_cache_num_hits_per_model") == 3
        assert metric(shown, "nv_cache_num_misses_per_model") == 3
        assert metric(shown, "nv_cache_hit_duration_per_model") > 0
        assert metric(shown, "nv_cache_miss_duration_per_model") > 0
        assert metric(shown, "nv_cache_num_entries") == 2
        assert metric(shown, "nv_cache_num_lookups") == 6
        assert metric(shown, "nv_cache_num_misses") == 3
        assert metric(shown, "nv_cache_num_evictions") == 0
        assert 0 < metric(shown, "nv_cache_util") < 1
        assert metric(shown, "nv_cache_lookup_duration") > 0
        assert metric(shown, "nv_cache_insertion_duration") > 0
        assert 'num_hits_per_model{model="plain"' not in shown


def test_a_second_cache_stops_the_start(tmp_path):
    """scheduling.md 7.12"""
    done = subprocess.run(
        [str(prebuilt.front_end()), "--model-repository", str(tmp_path),
         "--cache-config", "local,size=1048576",
         "--cache-config", "redis,host=x"],
        capture_output=True, timeout=60, check=False)
    assert done.returncode != 0
