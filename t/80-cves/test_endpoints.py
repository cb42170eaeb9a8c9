"""Endpoints of Triton's that aren't here, or not yet: nothing is told there,
nothing is written, nothing is opened."""

import json
import os

import pytest

from lib import models, process
from lib.load import Load
from lib.server import Server
from lib.unharmed import memory, rejected, unharmed
from lib.wire import tensor

SHM = os.path.join("/dev/shm", "inference-cve-test")

# of the server; no client is told
INSIDE = ("/dev/shm", "SECRET", "triton_", "inference-core")


@pytest.fixture(scope="module")
def server():
    with Server(models.standard_repository, parts="all repository trace logging"
                " shared_memory") as s:
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
    for word in (*parts, *INSIDE):
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


def test_cve_2024_0087(server):
    """Triton's log could be sent to any file, by a request."""
    path = f"{server.prefix}/planted.log"
    with unharmed(server):
        for settings in ({"log_file": path}, {"log_file": "/etc/passwd"},
                         {"log_verbose_level": 9, "log_file": path}):
            answer = server.post("/v2/logging", json.dumps(settings).encode())
            assert answer.status == 501
            assert "can not be updated" in answer.error
        assert server.get("/v2/logging").json()["log_file"] == ""
        assert server.get("/v2/logging").json()["log_verbose_level"] == 0
    assert not os.path.exists(path)


@pytest.mark.parametrize("where", ["", "/models/id_int32"])
def test_cve_2024_0100(server, where):
    """Triton's traces could be written over any file, by a request."""
    path = f"{server.prefix}/planted.json"
    with unharmed(server):
        for settings, status in (
                ({"trace_file": path, "trace_level": ["TIMESTAMPS"],
                  "trace_rate": "1"}, 501), ({"trace_rate": "9" * 30}, 400)):
            answer = server.post(f"/v2{where}/trace/setting",
                                 json.dumps(settings).encode())
            assert answer.status == status
            assert answer.error
            assert server.infer("id_int32", {"inputs": [
                tensor("IN", "INT32", [1], [1])]}).status == 200
    assert not os.path.exists(path)


@pytest.mark.parametrize("offset,size", [
    (0, 65), (64, 1), (2**62, 2**62), (2**63 - 1, 2), (-1, 1),
    (0, 2**63 - 1), (1, 2**63 - 1), (2**64 - 1, 2), (2**63, 2**63)])
def test_cve_2024_0088(server, region, offset, size):
    """Shared memory was read and written outside of a region."""
    there = {"shared_memory_region": "r", "shared_memory_offset": offset,
             "shared_memory_byte_size": size}
    with unharmed(server):
        text = rejected(register(server, "system", "r", key="/" + region,
                                 offset=offset, byte_size=size))
        for word in INSIDE:
            assert word not in text
        assert not mapped(server, region)
        answer = register(server, "system", "r", key="/" + region, offset=0,
                          byte_size=64)
        assert answer.status == 200
        for header in ({"inputs": [tensor("IN", "UINT8", [64], **there)]},
                       {"inputs": [tensor("IN", "UINT8", [1], [1])],
                        "outputs": [{"name": "OUT", "parameters": there}]}):
            rejected(server.infer("id_uint8", header))
    server.post("/v2/systemsharedmemory/unregister", b"")
    assert not mapped(server, region)


def test_cve_2024_0116(server, region):
    """A region could be unregistered while a request read it.

    Its memory stays while a request uses it: clients that unregister and
    register without end hurt none that infer."""
    there = {"shared_memory_region": "r", "shared_memory_byte_size": 64}
    good = {"inputs": [tensor("IN", "UINT8", [64], **there)],
            "outputs": [{"name": "OUT", "parameters": there}]}

    def change(connection):
        for call in ("register", "unregister"):
            answer = connection.post(
                f"/v2/systemsharedmemory/region/r/{call}", json.dumps(
                    {"key": "/" + region, "byte_size": 64}).encode())
            assert answer.status in (200, 400)
        return answer.status

    def use(connection):
        return connection.infer("id_uint8", good).status

    with unharmed(server), Load(server.port, change, count=2) as changes, \
            Load(server.port, use, count=2) as uses:
        changes.wait_for_more(200, 60)
        uses.wait_for_more(200, 60)
    assert set(uses.results) <= {200, 404}, uses.results
    server.post("/v2/systemsharedmemory/unregister", b"")
    assert process.wait_until(lambda: not mapped(server, region), 10)


@pytest.mark.parametrize("key", [
    "triton_python_backend_shm_region_1", "inference-core.1.0",
    "///triton_python_backend_shm_region_1", "/inference-core.1.0",
    "../../etc/passwd", "/dev/shm/../../etc/passwd", "memfd:inference",
    "x" * 4000])
def test_shared_memory_of_the_python_backend(server, key):
    """The Python backend speaks to its stub over shared memory.  A client
    made it write out of bounds (CVE-2025-23318, -23319), found the memory and
    corrupted it (CVE-2025-23329), or made it read out of bounds
    (CVE-2025-23333, -23334).

    No client can register that memory, the core's own least of all."""
    with unharmed(server):
        answer = register(server, "system", "python", key=key, byte_size=64,
                          offset=0)
        text = rejected(answer, 400, 500)
        assert "SECRET" not in text and "/etc/passwd\n" not in text
        rejected(register(server, "cuda", "python", byte_size=64, device_id=0,
                          raw_handle={"b64": "AAAA" * 21 + "AA=="}), 400)
        # a name that is a path reaches no region
        path = key.replace("/", "%2f")
        for kind in ("system", "cuda"):
            rejected(server.get(f"/v2/{kind}sharedmemory/region/{path}/status"),
                     404)
    assert server.get("/v2/systemsharedmemory/status").body == b"[]"


def test_memory_that_the_core_has_mapped(server):
    """Under any name, memory that the core itself has mapped is no client's
    (CVE-2025-23319, -23329, -23334)."""
    names = set()
    for pid in server.cores():
        with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
            names |= {line.split()[5] for line in f
                      if len(line.split()) > 5 and "memfd" in line}
    assert names                    # arenas have no name that shm_open knows
    with unharmed(server):
        for name in names:
            for key in (name, os.path.basename(name), f"/proc/self/{name}"):
                rejected(register(server, "system", "own", key=key,
                                  byte_size=64), 400, 500)


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


def test_cve_2026_47478(server, region):
    """A descriptor that had been closed was used: one of a region that was
    registered again, as far as its number says.

    A registration keeps none, however many there are."""
    pids = server.workers() + server.cores()
    # those of connections come and go
    with unharmed(server):
        for i in range(200):
            answer = register(server, "system", f"same{i}", key="/" + region,
                              offset=0, byte_size=64)
            assert answer.status == 200
            rejected(register(server, "system", "same0", key="/" + region,
                              offset=0, byte_size=64))
            rejected(register(server, "system", "none", key="/r", offset=i,
                              byte_size=64), 500)
        server.post("/v2/systemsharedmemory/unregister", b"")
    assert process.wait_until(
        lambda: all(process.descriptors(p) < 64 for p in pids), 10)
    assert not mapped(server, region)


@pytest.mark.parametrize("path", [
    "/invocations", "/ping", "/models", "/models/x", "/models/x/invoke"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_cve_2025_33238(server, method, path):
    """Models that came and went by Triton's SageMaker server ended it; here a
    location without `archives` has none of its paths."""
    with unharmed(server), server.wire() as connection:
        answer = connection.request(method, path, b"{}")
        assert answer.status == 404, answer
