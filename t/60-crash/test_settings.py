"""The core dies: what clients have set of log, traces and shared memory is as
it was."""

import base64
import concurrent.futures
import json
import os
import queue
import re
import struct

import numpy
import pytest
import tritonclient.grpc
import tritonclient.http

from lib import backends, models, process
from lib.regions import VALUES, Object, ask, error_of, grpc_of, rest_of
from lib.server import BACKENDS, BUILD, SLOW

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
    server.end_core()
    server.wait_for("/v2/health/ready")
    server.wait_for("/v2/models/one/ready")


def kept(server, name):
    """The path of a memory file that the master keeps."""
    folder = f"/proc/{server.process.pid}/fd"
    path, = {os.path.join(folder, fd) for fd in os.listdir(folder)
             if f"memfd:inference {name} " in os.readlink(f"{folder}/{fd}")}
    return path


def test_journal_and_crash_page_of_another_version(start):
    """Their contents are lost, and the log says so; the start is as ever."""
    server = start(http="    inference_model_control explicit;"
                        "    inference_load_model one;")
    with rest_of(server) as client:
        client.load_model("two")
        assert client.is_model_ready("two")
        for name, places in (("journal", (0, 40)), ("crash page", (0,))):
            with open(kept(server, name), "r+b", 0) as file:
                for place in places:
                    file.seek(place)
                    file.write(b"INFOTHER")
        next_core(server)
        server.wait_log("the journal is of another version")
        server.wait_log("the crash page is of another version")
        assert not client.is_model_ready("two")
        client.load_model("two")
        next_core(server)               # both are this version's again
        assert server.wait_for("/v2/models/two/ready")
    assert server.log_text().count("is of another version") == 2


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
    server.wait_said('had set of "lost" is lost')
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


def gpu_handle():
    """Of a process that any core may be."""
    raw = struct.pack("<8siiQQ", b"fakeipc", 0, 0, 512 << 20, 65536)
    return base64.b64encode(raw.ljust(64, b"\0"))


def test_regions_of_a_gpu(start):
    server = start(inference_env=[f"INFERENCE_CUDA_DRIVER={DRIVER}"])
    with rest_of(server) as client:
        client.register_cuda_shared_memory("gpu", gpu_handle(), 0, 65536)
        before = client.get_cuda_shared_memory_status()
        assert [r["name"] for r in before] == ["gpu"]
        next_core(server)
        assert client.get_cuda_shared_memory_status() == before


def with_kinds(repository):
    fill(repository)
    models.write_model(
        repository, "kinds", 'name: "kinds"\nbackend: "memory_kinds"\n'
        + models.io_block("input", [("IN", "UINT8", [-1])])
        + models.io_block("output", [("DATA", "UINT8", [-1]),
                                     ("REPORT", "BYTES", [1])])
        + "instance_group { kind: KIND_GPU }\n")


def report_of(server):
    """Of an input in the GPU's region."""
    given = tritonclient.http.InferInput("IN", [3], "UINT8")
    given.set_shared_memory("gpu", 3)
    with rest_of(server) as client:
        return client.infer("kinds", [given], outputs=[
            tritonclient.http.InferRequestedOutput("REPORT")]
        ).as_numpy("REPORT")[0].decode()


def streamed_report_of(server):
    """The same by a message of a stream."""
    answers = queue.Queue()
    given = tritonclient.grpc.InferInput("IN", [3], "UINT8")
    given.set_shared_memory("gpu", 3)
    with grpc_of(server) as client:
        client.start_stream(lambda result, error: answers.put((result, error)))
        client.async_stream_infer("kinds", [given], outputs=[
            tritonclient.grpc.InferRequestedOutput("REPORT")])
        result, error = answers.get(timeout=60 * SLOW)
        client.stop_stream()
    assert error is None
    return result.as_numpy("REPORT")[0].decode()


def gpu_regions_of(server):
    with rest_of(server) as client:
        return client.get_cuda_shared_memory_status()


def register(server, name, key):
    with rest_of(server) as client:
        client.register_system_shared_memory(name, key, 64)


@pytest.fixture
def gate(make_server, tmp_path):
    """While this file is there, the driver opens no memory."""
    os.chmod(tmp_path, 0o777)
    yield tmp_path / "gate"
    (tmp_path / "gate").unlink(missing_ok=True)


def test_requests_wait_for_regions_and_nothing_else_does(make_server, gate,
                                                         memory):
    """A driver takes its time to open the memory that a client had registered
    with the last core.  Models are loaded, requests answered and a reload is
    taken over meanwhile; a request that names a region, and calls about them,
    wait."""
    settings = {
        "parts": PARTS, "workers": 2, "http2": True,
        "server": "        location /brief/ { "
                  "inference all shared_memory; inference_timeout 300ms; }\n",
        "inference_env": [f"INFERENCE_CUDA_DRIVER={DRIVER}",
                          f"FAKE_CUDA_IPC_GATE={gate}"]}
    backend = f"    inference_backends {BACKENDS};\n"
    server = make_server(with_kinds, allow_alarms=[KILLED, LOST],
                         backends=backends.build("memory_kinds"),
                         http=backend, **settings)
    with rest_of(server) as client, \
            concurrent.futures.ThreadPoolExecutor() as threads:
        client.register_system_shared_memory("in", memory.key, 64)
        client.register_cuda_shared_memory("gpu", gpu_handle(), 0, 65536)
        gpu = gpu_regions_of(server)
        report = report_of(server)
        gate.touch()
        next_core(server)
        server.wait_for("/v2/models/kinds/ready")
        waiting = [threads.submit(report_of, server),
                   threads.submit(streamed_report_of, server)]
        status = threads.submit(gpu_regions_of, server)
        registered = threads.submit(register, server, "late", memory.key)
        body = json.dumps({
            "inputs": [{"name": "IN", "datatype": "UINT8", "shape": [3],
                        "parameters": {"shared_memory_region": "gpu",
                                       "shared_memory_byte_size": 3}}]})
        answer = server.post("/brief/v2/models/kinds/infer", body.encode())
        assert answer.status == 503, answer
        values = numpy.arange(16, dtype=numpy.int32)
        ask(tritonclient.http, client, "one", data=values, shape=(16,))
        server.write_config(
            http=backend + "    inference_log info verbose=1;\n", **settings)
        server.signal("HUP")
        server.wait_log("configuration generation 2 is in force", 20 * SLOW)
        ask(tritonclient.http, client, "one", data=values, shape=(16,))
        assert not any(f.done() for f in (*waiting, status, registered))
        gate.unlink()
        assert [f.result(30 * SLOW) for f in waiting] == [report] * 2
        assert status.result(30 * SLOW) == gpu
        registered.result(30 * SLOW)
        assert [r["name"] for r in client.get_system_shared_memory_status()
                ] == ["in", "late"]
        assert client.get_log_settings()["log_verbose_level"] == 1
        # a region that no core has had
        status, text = error_of(tritonclient.http, ask, tritonclient.http,
                                client, "one", place=("nobody", 16))
        assert status == "404" and "Unable to find" in text


def test_a_region_is_not_in_another_object_of_that_name(start, memory):
    """The next core has no more than a name, and anybody may have made an
    object of it since."""
    server = start()
    other = Object(64, VALUES.tobytes())
    with rest_of(server) as client:
        client.register_system_shared_memory("kept", memory.key, 64)
        client.register_system_shared_memory("other", other.key, 64)
        os.unlink(other.path)
        replaced = Object(64, key=other.key)
        next_core(server)
        assert [r["name"] for r in client.get_system_shared_memory_status()
                ] == ["kept"]
        server.wait_log('had set of "other" is lost with the last core: .*'
                        "another object")
        next_core(server)               # the next one has not heard of it
        assert [r["name"] for r in client.get_system_shared_memory_status()
                ] == ["kept"]
        client.register_system_shared_memory("other", replaced.key, 64)
        next_core(server)
        assert [r["name"] for r in client.get_system_shared_memory_status()
                ] == ["kept", "other"]
    assert len(re.findall('had set of "other" is lost', server.log_text())
               ) == 1
    other.close()
    replaced.close()
