"""Endpoints of Triton's that aren't here, or not yet: nothing is told there,
nothing is written, nothing is opened."""

import json
import os

import pytest

from lib import models, process
from lib.server import Server
from lib.unharmed import memory, rejected, unharmed
from lib.wire import tensor

SHM = os.path.join("/dev/shm", "inference-cve-test")


@pytest.fixture(scope="module")
def server():
    with Server(models.standard_repository, parts="all repository") as s:
        yield s


@pytest.fixture
def region():
    """Somebody's shared memory, of 64 bytes."""
    with open(SHM, "wb") as f:
        f.write(b"SECRET-of-another-process" + bytes(39))
    yield os.path.basename(SHM)
    os.unlink(SHM)


def not_here(answer, *parts):
    """The answer says that there is no such endpoint, and nothing else."""
    text = rejected(answer, 501)
    assert "not available in this version" in text
    for word in (*parts, "/dev/shm", "SECRET", "triton_", "inference-core"):
        assert word not in text


def mapped(server, name):
    """Whether a process of the server has that file in its memory."""
    for pid in process.descendants(server.process.pid):
        with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
            if name in f.read():
                return True
    return False


def register(server, kind, name, **what):
    return server.post(f"/v2/{kind}sharedmemory/region/{name}/register",
                       json.dumps(what).encode())


def shared(server, key, **more):
    """Everything that names a region of shared memory, on every endpoint."""
    for kind in ("system", "cuda"):
        for call in (f"region/{key}/status", "status"):
            yield server.get(f"/v2/{kind}sharedmemory/{call}")
        for call in (f"region/{key}/unregister", "unregister"):
            yield server.post(f"/v2/{kind}sharedmemory/{call}", b"")
        yield register(server, kind, key, key="/" + key, offset=0,
                       byte_size=64, device_id=0, raw_handle={
                           "b64": "AAAA"}, **more)


def test_cve_2024_0087(server):
    """Triton's log could be sent to any file, by a request."""
    path = f"{server.prefix}/planted.log"
    with unharmed(server):
        for settings in ({"log_file": path}, {"log_file": "/etc/passwd"},
                         {"log_verbose_level": 9, "log_file": path}):
            not_here(server.post("/v2/logging",
                                 json.dumps(settings).encode()), path)
        not_here(server.get("/v2/logging"), path)
    assert not os.path.exists(path)


@pytest.mark.parametrize("where", ["", "/models/id_int32"])
def test_cve_2024_0100(server, where):
    """Triton's traces could be written over any file, by a request."""
    path = f"{server.prefix}/planted.json"
    with unharmed(server):
        for settings in ({"trace_file": path, "trace_level": ["TIMESTAMPS"],
                          "trace_rate": "1"}, {"trace_rate": "9" * 30}):
            not_here(server.post(f"/v2{where}/trace/setting",
                                 json.dumps(settings).encode()), path)
            assert server.infer("id_int32", {"inputs": [
                tensor("IN", "INT32", [1], [1])]}).status == 200
    assert not os.path.exists(path)


@pytest.mark.parametrize("offset,size", [
    (0, 64), (0, 65), (64, 1), (2**63, 2**63), (2**64 - 1, 2), (-1, 1),
    (0, 2**64 - 1), (1, 2**64 - 1)])
def test_cve_2024_0088(server, region, offset, size):
    """Shared memory was read and written outside of a region."""
    with unharmed(server):
        not_here(register(server, "system", "r", key="/" + region,
                          offset=offset, byte_size=size), region)
    assert not mapped(server, region)


def test_cve_2024_0116(server, region):
    """A region could be unregistered while a request read it."""
    with unharmed(server):
        for answer in shared(server, region):
            not_here(answer, region)
    assert not mapped(server, region)


@pytest.mark.parametrize("key", [
    "triton_python_backend_shm_region_1", "inference-core.1.0",
    "../../etc/passwd", "memfd:inference", "x" * 4000])
def test_shared_memory_of_the_python_backend(server, key):
    """The Python backend speaks to its stub over shared memory.  A client
    made it write out of bounds (CVE-2025-23318, -23319), found the memory and
    corrupted it (CVE-2025-23329), or made it read out of bounds
    (CVE-2025-23333, -23334).

    No region can be registered, the core's own least of all."""
    path = key.replace("/", "%2f")
    with unharmed(server):
        for kind in ("system", "cuda"):
            answer = register(server, kind, "python", key=key,
                              byte_size=64, offset=23318)
            not_here(answer, key)
        # a name that is a path reaches no endpoint
        for answer in shared(server, path):
            assert answer.status in (404, 501), answer
            assert key not in answer.error


def test_cve_2025_23320(server):
    """The error of a request that was too large for the Python backend told
    the name of its shared memory.

    Errors name what the client has sent and nothing of the server's own."""
    big = tensor("IN", "UINT8", [2**40], binary_data_size=2**40)
    there = {"shared_memory_region": "r", "shared_memory_byte_size": 2**40}
    before = memory(server)
    with unharmed(server):
        for header in (
                {"inputs": [big]},
                {"inputs": [tensor("IN", "UINT8", [4], **there)]},
                {"inputs": [tensor("IN", "UINT8", [1], [1])],
                 "outputs": [{"name": "OUT", "parameters": there}]}):
            text = rejected(server.infer("id_uint8", header, b"x"),
                            400, 404, 413, 501)
            for word in ("/dev/", "memfd", "shm", "/tmp", "inference-core",
                         "arena of", "0x", str(server.prefix)):
                assert word not in text, text
    assert memory(server) - before < 32 << 20


def test_cve_2026_47478(server):
    """A descriptor that had been closed was used: one of a region that was
    registered again, as far as its number says.

    Registrations open nothing, however many there are."""
    pids = server.workers() + server.cores()
    # those of connections come and go
    with unharmed(server):
        for i in range(200):
            not_here(register(server, "system", "same", key="/r", offset=i,
                              byte_size=64))
    assert process.wait_until(
        lambda: all(process.descriptors(p) < 64 for p in pids), 10)


@pytest.mark.parametrize("path", [
    "/invocations", "/ping", "/models", "/models/x", "/models/x/invoke"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_cve_2025_33238(server, method, path):
    """Models that came and went by Triton's SageMaker server ended it."""
    with unharmed(server), server.wire() as connection:
        answer = connection.request(method, path, b"{}")
        assert answer.status == 404, answer
