"""The core dies: what clients have set of log, traces and shared memory is as
it was."""

import base64
import os
import re
import signal
import struct

import numpy
import pytest
import tritonclient.http

from lib import models, process
from lib.regions import VALUES, Object, ask, rest_of
from lib.server import BUILD, SLOW

PARTS = "health metadata config infer repository trace logging shared_memory"
KILLED = r"exited on signal"
LOST = r"what a request had set of \"[^\"]*\" is lost"
DRIVER = BUILD / "t-cuda/libfake-cuda.so"


def fill(repository):
    models.identity(repository, "one", [("IN", "INT32", [-1])])
    models.identity(repository, "two", [("IN", "INT32", [-1])])


@pytest.fixture
def start(make_server):
    def make(**kw):
        return make_server(fill, **{"parts": PARTS, **kw},
                           allow_alarms=[KILLED, LOST])
    return make


@pytest.fixture
def memory():
    made = Object(8192, VALUES.tobytes())
    yield made
    made.close()


def next_core(server):
    core = server.core()
    os.kill(core, signal.SIGKILL)
    assert process.wait_until(
        lambda: server.cores() and core not in server.cores(), 10 * SLOW)
    server.wait_for("/v2/health/ready")
    server.wait_for("/v2/models/one/ready")


def test_log_settings(start):
    server = start()
    with rest_of(server) as client:
        client.update_log_settings({"log_verbose_level": 1})
        before = client.update_log_settings({"log_warning": False,
                                             "log_format": "ISO8601"})
        for _ in range(2):              # those of a core that changed nothing
            next_core(server)
            assert client.get_log_settings() == before
        assert before["log_verbose_level"] == 1
        assert not before["log_warning"]


def test_a_reload_that_configures_the_log_ends_what_clients_set(start):
    server = start()
    with rest_of(server) as client:
        client.update_log_settings({"log_verbose_level": 3})
        server.write_config(
            http="    inference_log warn verbose=1;\n", parts=PARTS)
        server.signal("HUP")
        assert process.wait_until(
            lambda: client.get_log_settings()["log_verbose_level"] == 1,
            10 * SLOW)
        configured = client.get_log_settings()
        next_core(server)
        assert client.get_log_settings() == configured


def test_trace_settings(start, tmp_path):
    os.chmod(tmp_path, 0o777)
    server = start(http=f"    inference_trace file={tmp_path}/t;\n")
    with rest_of(server) as client:
        client.update_trace_settings(None, {"trace_rate": "3"})
        client.update_trace_settings(
            "one", {"trace_level": ["TIMESTAMPS", "TENSORS"],
                    "trace_count": "5"})
        client.update_trace_settings("two", {"trace_rate": "8"})
        client.update_trace_settings(None, {"log_frequency": "7"})
        client.update_trace_settings("two", {"trace_rate": None})
        names = (None, "one", "two")
        before = [client.get_trace_settings(name) for name in names]
        assert [b["trace_rate"] for b in before] == ["3", "3", "3"]
        next_core(server)
        assert [client.get_trace_settings(name) for name in names] == before
        # what the model has not set is the server's still
        client.update_trace_settings(None, {"trace_rate": "9",
                                            "log_frequency": None})
        assert client.get_trace_settings("one")["trace_rate"] == "9"
        next_core(server)
        assert client.get_trace_settings("two")["trace_rate"] == "9"
        assert client.get_trace_settings("two")["log_frequency"] == "0"


@pytest.mark.parametrize("level,changes", [
    ("timestamps", [(None, {"trace_level": ["OFF"]}),
                    ("one", {"trace_rate": "0"}),
                    (None, {"log_frequency": "7"})]),
    ("off", [("one", {"trace_level": ["TIMESTAMPS"]}),
             (None, {"trace_rate": "0"})])], ids=["server-last", "invalid-now"])
def test_trace_settings_of_a_model_rest_on_the_server_s(start, tmp_path, level,
                                                        changes):
    """Neither is rejected for what the other is while they come back."""
    os.chmod(tmp_path, 0o777)
    server = start(
        http=f"    inference_trace file={tmp_path}/t level={level};\n")
    with rest_of(server) as client:
        for model, change in changes:
            client.update_trace_settings(model, change)
        before = [client.get_trace_settings(name) for name in (None, "one")]
        assert before[1]["trace_rate"] == "0"
        for _ in range(2):
            next_core(server)
            assert [client.get_trace_settings(name)
                    for name in (None, "one")] == before
    assert not re.search(LOST, server.log_text())


def test_regions(start, memory):
    server = start()
    with rest_of(server) as client:
        client.register_system_shared_memory("in", memory.key, 64)
        client.register_system_shared_memory("out", memory.key, 4096,
                                             offset=4096)
        client.register_system_shared_memory("gone", memory.key, 64)
        client.unregister_system_shared_memory("gone")
        before = client.get_system_shared_memory_status()
        assert [r["name"] for r in before] == ["in", "out"]
        next_core(server)
        assert client.get_system_shared_memory_status() == before
        ask(tritonclient.http, client, "one", place=("in", 16),
            out=("out", 64, 128))
        assert numpy.array_equal(
            numpy.frombuffer(memory[4096 + 128:4096 + 144], numpy.int32),
            VALUES)
        client.unregister_system_shared_memory()
        next_core(server)
        assert client.get_system_shared_memory_status() == []


def test_a_region_whose_object_is_gone_is_left_out(start, memory):
    server = start()
    other = Object(64)
    with rest_of(server) as client:
        client.register_system_shared_memory("kept", memory.key, 64)
        client.register_system_shared_memory("lost", other.key, 64)
        os.unlink(other.path)
        next_core(server)
        assert [r["name"] for r in client.get_system_shared_memory_status()
                ] == ["kept"]
        next_core(server)               # the next one has not heard of it
        assert [r["name"] for r in client.get_system_shared_memory_status()
                ] == ["kept"]
    assert len(re.findall('had set of "lost" is lost', server.log_text())) == 1
    other.close()


def test_regions_that_come_and_go_cost_the_next_core_nothing(start, memory):
    """More records than the journal keeps before it leaves the old ones
    out."""
    server = start()
    with rest_of(server) as client:
        for i in range(3000):
            client.register_system_shared_memory(f"{'r' * 400}{i}",
                                                 memory.key, 64)
            client.unregister_system_shared_memory(f"{'r' * 400}{i}")
        client.register_system_shared_memory("last", memory.key, 64)
        next_core(server)
        assert [r["name"] for r in client.get_system_shared_memory_status()
                ] == ["last"]


def test_regions_of_a_gpu(start):
    server = start(inference_env=[f"INFERENCE_CUDA_DRIVER={DRIVER}"])
    raw = struct.pack("<8siiQQ", b"fakeipc", 0, 0, 512 << 20,
                      65536).ljust(64, b"\0")
    with rest_of(server) as client:
        client.register_cuda_shared_memory("gpu", base64.b64encode(raw), 0,
                                           65536)
        before = client.get_cuda_shared_memory_status()
        assert [r["name"] for r in before] == ["gpu"]
        next_core(server)
        assert client.get_cuda_shared_memory_status() == before
