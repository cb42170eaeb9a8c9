"""Regions: registered, listed, unregistered, and what no region can be."""

import fcntl
import json
import os
import signal
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest
import tritonclient.grpc
import tritonclient.http
from tritonclient.grpc import service_pb2 as pb

from lib import access_log, grpc_client, process
from lib.grpc_client import Client, Failure
from lib.regions import (VALUES, ask, error_of, infer_later, rest_of,
                         text_of)
from lib.server import SANITIZER
from lib.unharmed import unharmed
from lib.wire import tensor

PAGE = os.sysconf("SC_PAGE_SIZE")
DISABLED = "Client shared memory is disabled."
PENDING = b'nv_inference_pending_request_count{model="slow",version="1"} 1'


def rows(api, client, **kw):
    """The status as REST gives it."""
    got = client.get_system_shared_memory_status(**kw)
    if api is tritonclient.http:
        return got
    return [{"name": r.name, "key": r.key, "offset": r.offset,
             "byte_size": r.byte_size}
            for _, r in sorted(got.regions.items())]


def register(server, name, kind="system", **what):
    return server.post(f"/v2/{kind}sharedmemory/region/{name}/register",
                       json.dumps(what).encode())


def mapped(server, key):
    """How many mappings of that object the core has."""
    text = "".join(open(f"/proc/{pid}/maps", encoding="utf-8").read()
                   for pid in server.cores())
    return text.count("/dev/shm" + key)


def test_life_of_regions(server, api, client, new_object):
    o = new_object(2 * PAGE)
    assert rows(api, client) == []
    client.register_system_shared_memory("b", o.key, o.size)
    client.register_system_shared_memory("a", o.key, 100, offset=PAGE)
    a = {"name": "a", "key": o.key, "offset": PAGE, "byte_size": 100}
    b = {"name": "b", "key": o.key, "offset": 0, "byte_size": 2 * PAGE}
    assert rows(api, client) == [a, b]
    assert rows(api, client, region_name="b") == [b]
    assert mapped(server, o.key) == 2

    status, text = error_of(api, client.register_system_shared_memory, "a",
                            o.key, 4)
    assert status in ("400", "ALREADY_EXISTS")
    assert text == "shared memory region 'a' already in manager"

    client.unregister_system_shared_memory("nobody")
    assert rows(api, client) == [a, b]
    client.unregister_system_shared_memory("b")
    assert rows(api, client) == [a]
    assert mapped(server, o.key) == 1
    status, text = error_of(api, client.get_system_shared_memory_status,
                            region_name="b")
    assert status in ("404", "NOT_FOUND")
    assert text == "Unable to find system shared memory region: 'b'"

    client.register_system_shared_memory("b", o.key, o.size)
    client.unregister_system_shared_memory()
    assert rows(api, client) == [] and mapped(server, o.key) == 0


def test_both_kinds_have_one_name_space(api, client, new_object):
    o = new_object()
    client.register_system_shared_memory("r", o.key, o.size)
    status, text = error_of(api, client.get_cuda_shared_memory_status,
                            region_name="r")
    assert status in ("404", "NOT_FOUND")
    assert text == ("The region named 'r' is registered as system shared"
                    " memory, not CUDA shared memory")
    client.unregister_cuda_shared_memory("r")
    client.unregister_cuda_shared_memory()
    assert len(rows(api, client)) == 1


def test_answers_of_rest(server, rest, new_object):
    o = new_object()
    answer = register(server, "in0", key=o.key, offset=0, byte_size=4096)
    assert answer.status == 200 and answer.body == b""
    assert server.get("/v2/systemsharedmemory/region/in0/status").body == (
        f'[{{"name":"in0","key":"{o.key}","offset":0,"byte_size":4096}}]'
        .encode())
    assert server.get("/v2/cudasharedmemory/status").body == b"[]"
    answer = server.post("/v2/systemsharedmemory/region/in0/unregister", b"")
    assert answer.status == 200 and answer.body == b""
    assert server.get("/v2/systemsharedmemory/status").body == b"[]"


# ---- what can't be registered

@pytest.mark.parametrize("offset,size", [
    (0, 0), (0, 2 * PAGE + 1), (PAGE, PAGE + 1), (2 * PAGE, 1),
    (3 * PAGE, PAGE), (2**63 - PAGE, PAGE), (0, 2**63 - 1),
    (2**63 - PAGE, 2**63 - 1), (PAGE, 2**63 - PAGE)])
def test_ranges_outside_of_the_object(server, api, client, new_object, offset,
                                      size):
    o = new_object(2 * PAGE)
    status, text = error_of(api, client.register_system_shared_memory, "r",
                            o.key, size, offset=offset)
    assert status in ("400", "INVALID_ARGUMENT")
    assert text == "failed to register shared memory region 'r': invalid args"
    assert rows(api, client) == [] and mapped(server, o.key) == 0


@pytest.mark.parametrize("offset,size", [
    (2**64 - 1, 2), (2**64 - PAGE, PAGE), (2**64 - PAGE, 2 * PAGE),
    (PAGE, 2**64 - PAGE), (PAGE, 2**64 - 1), (2**63, 2**63)])
def test_ranges_that_wrap(server, client, new_object, offset, size):
    o = new_object(2 * PAGE)
    with Client(server.port2) as stub, pytest.raises(Failure) as caught:
        stub.call("SystemSharedMemoryRegister",
                  pb.SystemSharedMemoryRegisterRequest(
                      name="r", key=o.key, offset=offset, byte_size=size))
    assert caught.value.text \
        == "failed to register shared memory region 'r': invalid args"
    assert register(server, "r", key=o.key, offset=offset,
                    byte_size=size).status == 400
    assert mapped(server, o.key) == 0


@pytest.mark.parametrize("offset", [1, 100, PAGE - 1, PAGE + 1])
def test_offsets_are_whole_pages(api, client, new_object, offset):
    o = new_object(2 * PAGE)
    assert "is not a multiple of the page size" in text_of(
        api, client.register_system_shared_memory, "r", o.key, 16,
        offset=offset)


def test_an_object_that_is_none(api, client):
    status, text = error_of(api, client.register_system_shared_memory, "r",
                            "/inf-t-nobody", 16)
    assert status in ("500", "INTERNAL")
    assert text == "Unable to open shared memory region: '/inf-t-nobody'"


def test_an_object_that_another_process_has_leased(api, client):
    """The server does not wait for it."""
    key = f"/inf-t-leased-{os.getpid()}"
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    fd = os.open("/dev/shm" + key, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        os.ftruncate(fd, 16)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        _, text = error_of(api, client.register_system_shared_memory, "r",
                           key, 16)
        assert text == f"Unable to open shared memory region: '{key}'"
    finally:
        os.close(fd)
        os.unlink("/dev/shm" + key)
        signal.signal(signal.SIGIO, before)


@pytest.mark.parametrize("key", [
    "", "/", "///", ".", "..", "/..", "/../shm/{0}", "/dev/shm/{0}", "/a/{0}",
    "x" * 256, "/" * 5000, "/" * 1000 + "{0}"])
def test_keys_that_are_none(api, client, new_object, key):
    o = new_object()
    status, text = error_of(api, client.register_system_shared_memory, "r",
                            key.format(o.key[1:]), 16)
    assert status in ("400", "INVALID_ARGUMENT")
    assert "with no slash but in front" in text


@pytest.mark.parametrize("key", [
    "triton_python_backend_shm_region_{}", "inference-core.{}", "sem.{}"])
@pytest.mark.parametrize("slashes", ["", "/", "///"])
def test_reserved_keys(server, api, client, new_object, key, slashes):
    """Whether there is such an object or not is not told."""
    o = new_object(key="/" + key.format(os.getpid()))
    for name in (o.key[1:], key.format("no")):
        status, text = error_of(api, client.register_system_shared_memory,
                                "r", slashes + name, 16)
        assert status in ("400", "INVALID_ARGUMENT")
        assert text.startswith(
            f"cannot register shared memory region 'r' with key '{slashes}")
        assert text.endswith(" as the key contains the reserved prefix '"
                             + key[:key.index("{")] + "'"), text
    assert mapped(server, o.key) == 0


def test_slashes_in_front(api, client, new_object):
    o = new_object()
    for i, slashes in enumerate(("", "/", "//")):
        client.register_system_shared_memory(f"r{i}", slashes + o.key[1:], 16)
    assert [r["key"] for r in rows(api, client)] \
        == [o.key[1:], o.key, "/" + o.key]


@pytest.mark.parametrize("make", ["directory", "pipe", "link", "device"])
def test_what_is_no_object(server, api, client, make):
    path = f"/dev/shm/inf-t-{make}-{os.getpid()}"
    if make == "directory":
        os.mkdir(path)
    elif make == "pipe":
        os.mkfifo(path)
    elif make == "link":
        os.symlink("/etc/passwd", path)
    else:
        try:
            os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))
        except PermissionError:
            os.mkfifo(path)
    try:
        with unharmed(server):
            status, _ = error_of(api, client.register_system_shared_memory,
                                 "r", os.path.basename(path), 16)
        assert status in ("400", "500", "INVALID_ARGUMENT", "INTERNAL")
    finally:
        (os.rmdir if make == "directory" else os.unlink)(path)
    assert rows(api, client) == []


@pytest.mark.parametrize("body,words", [
    ({}, "Shared memory register request has no 'key' field"),
    ({"byte_size": 8}, "Shared memory register request has no 'key' field"),
    ({"key": "/k"}, "Shared memory register request has no 'byte_size' field"),
    ({"key": 7, "byte_size": 8}, "'key' must be a string"),
    ({"key": "a\0b", "byte_size": 8}, "'key' must be a string without"),
    ({"key": "/k", "byte_size": "8"}, "'byte_size' must be an integer"),
    ({"key": "/k", "byte_size": -8}, "'byte_size' must be an integer"),
    ({"key": "/k", "byte_size": 8, "offset": 1.5}, "'offset' must be an int"),
    ([], "must be an object")])
def test_bodies_of_rest(server, body, words):
    answer = server.post("/v2/systemsharedmemory/region/r/register",
                         json.dumps(body).encode())
    assert answer.status == 400 and words in answer.error, answer


def test_names(server, api, client, new_object):
    o = new_object()
    for kind in ("system", "cuda"):
        answer = server.post(f"/v2/{kind}sharedmemory/register", json.dumps({
            "key": o.key, "byte_size": 8, "device_id": 0,
            "raw_handle": {"b64": ""}}).encode())
        assert answer.status == 400
        assert answer.error == "'region name' is necessary to register" \
            f" {kind} shared memory region"
    assert "1 to 1024 bytes" in text_of(
        api, client.register_system_shared_memory, "n" * 1025, o.key, 8)
    client.register_system_shared_memory("n" * 1024, o.key, 8)
    assert len(rows(api, client)) == 1


def test_names_are_no_models_in_logs(start, new_object):
    server = start(http=access_log.FORMAT,
                   server="        " + access_log.WRITTEN)
    log = access_log.AccessLog(server)
    o = new_object()
    assert register(server, "r", key=o.key, byte_size=8).status == 200
    assert log.line(verb="system_shm")["model"] == ""


def test_there_is_a_limit(server, rest, new_object):
    o = new_object()
    with server.wire() as connection:
        def add(i):
            return connection.post(
                f"/v2/systemsharedmemory/region/r{i}/register",
                json.dumps({"key": o.key, "byte_size": 8}).encode())

        for i in range(4096):
            assert add(i).status == 200
        answer = add("more")
        assert answer.status == 503 and "4096" in answer.error
        assert len(rows(tritonclient.http, rest)) == 4096
        rest.unregister_system_shared_memory()
        assert add("more").status == 200


# ---- regions and requests

def test_unregister_while_a_request_uses_it(server, api, client, new_object):
    """The request ends as if nothing had been; the name is free at once."""
    o = new_object(content=VALUES.tobytes())
    other = new_object()
    client.register_system_shared_memory("r", o.key, o.size)
    with ThreadPoolExecutor() as pool:
        pending = []
        for at in (64, 128):
            given = tritonclient.http.InferInput("IN", [4], "INT32")
            given.set_shared_memory("r", 16)
            asked = tritonclient.http.InferRequestedOutput("OUT")
            asked.set_shared_memory("r", 16, at)
            pending.append(infer_later(pool, server, "slow", [given],
                                       outputs=[asked]))
        # one runs, the other waits
        assert process.wait_until(lambda: PENDING in server.get(
            "/metrics").body, 10)
        client.unregister_system_shared_memory("r")
        assert rows(api, client) == []
        assert "Unable to find" in text_of(api, ask, api, client,
                                           place=("r", 16))
        client.register_system_shared_memory("r", other.key, other.size)
        assert mapped(server, o.key) == 1
        for p in pending:
            p.result()
    for at in (64, 128):
        assert o[at:at + 16] == VALUES.tobytes()
        assert other[at:at + 16] == bytes(16)
    assert process.wait_until(lambda: mapped(server, o.key) == 0, 10)


@pytest.mark.parametrize("use", ["input", "output"])
def test_an_object_that_becomes_shorter(server, api, client, new_object, use):
    """Its pages are gone: reading or writing there is SIGBUS, which costs
    this request and no other."""
    o = new_object(64 * PAGE, content=VALUES.tobytes())
    sound = new_object(content=VALUES.tobytes())
    client.register_system_shared_memory("r", o.key, o.size)
    client.register_system_shared_memory("sound", sound.key, sound.size)
    ask(api, client, place=("r", 16), out=("r", 16, 32 * PAGE))
    o.truncate(PAGE)
    with unharmed(server):
        at = ("r", 16, 32 * PAGE)
        for _ in range(2):
            status, text = error_of(api, ask, api, client, data=VALUES,
                                    **({"place": at} if use == "input"
                                       else {"out": at}))
            assert status in ("400", "INVALID_ARGUMENT")
            assert "shared memory region 'r' is broken" in text
        # all of it, for good
        assert "is broken" in text_of(api, ask, api, client, place=("r", 16))
        ask(api, client, place=("sound", 16), out=("sound", 16, 64))
        assert sound[64:80] == VALUES.tobytes()
        assert [r["name"] for r in rows(api, client)] == ["r", "sound"]
    o.truncate(64 * PAGE)
    client.unregister_system_shared_memory("r")
    client.register_system_shared_memory("r", o.key, o.size)
    ask(api, client, data=VALUES, out=("r", 16, 32 * PAGE))
    assert o[32 * PAGE:32 * PAGE + 16] == VALUES.tobytes()


def test_strings_in_an_object_that_becomes_shorter(server, api, client,
                                                   new_object):
    o = new_object(16 * PAGE)
    client.register_system_shared_memory("r", o.key, o.size)
    o.truncate(0)
    with unharmed(server):
        assert "is broken" in text_of(
            api, ask, api, client, "id_bytes", shape=(4 * PAGE,),
            datatype="BYTES", place=("r", 16 * PAGE))


@pytest.mark.skipif(bool(SANITIZER), reason="the sanitizer reports a SIGBUS")
def test_other_sigbus_ends_the_core(start, new_object):
    """The handler is for regions: nothing else is hidden."""
    server = start(allow_alarms=["exited on signal", "core"])
    o = new_object(PAGE)
    with rest_of(server) as client:
        client.register_system_shared_memory("r", o.key, o.size)
        core = server.cores()
        os.kill(core[0], signal.SIGBUS)
        assert process.wait_until(
            lambda: server.cores() not in ([], core), 20)


# ---- who may

def test_a_location_without_the_part(server, rest, new_object):
    """A region that another location has registered is out of reach here."""
    o = new_object(content=VALUES.tobytes())
    rest.register_system_shared_memory("r", o.key, o.size)
    there = {"shared_memory_region": "r", "shared_memory_byte_size": 16}
    for header in ({"inputs": [tensor("IN", "INT32", [4], **there)]},
                   {"inputs": [tensor("IN", "INT32", [1], [1])],
                    "outputs": [{"name": "OUT", "parameters": there}]}):
        answer = server.post("/only/v2/models/id_int32/infer",
                             json.dumps(header).encode())
        assert answer.status == 501 and DISABLED in answer.error
    assert o[0:16] == VALUES.tobytes()
    for call in ("status", "region/r/status"):
        answer = server.get("/only/v2/systemsharedmemory/" + call)
        assert answer.status == 501 and DISABLED in answer.error
    for call in ("region/r/unregister", "unregister", "region/s/register"):
        answer = server.post("/only/v2/systemsharedmemory/" + call, b"{}")
        assert answer.status == 501 and DISABLED in answer.error
    assert len(rest.get_system_shared_memory_status()) == 1
    with Client(server.port2, prefix="/only") as client:
        with pytest.raises(Failure) as caught:
            client.infer("id_int32", grpc_client.tensor(
                "IN", "INT32", [4], None, there))
        assert DISABLED in caught.value.text
        for method in ("Status", "Register", "Unregister"):
            for kind in ("System", "Cuda"):
                name = f"{kind}SharedMemory{method}"
                with pytest.raises(Failure) as caught:
                    client.call(name, getattr(pb, name + "Request")(name="r"))
                assert "UNIMPLEMENTED" in str(caught.value.code)
    answer = server.infer("id_int32", {"inputs": [
        tensor("IN", "INT32", [4], **there)]})
    assert answer.status == 200


def test_no_location_with_the_part(start):
    server = start(parts="all")
    answer = server.get("/v2")
    assert not [e for e in answer.json()["extensions"] if "memory" in e]
    assert register(server, "r", key="/k", byte_size=8).status == 501


def test_reloads(start, new_object):
    """A region stays where it may stay."""
    server = start()
    o = new_object(content=VALUES.tobytes())
    api = tritonclient.http
    with rest_of(server) as client:
        client.register_system_shared_memory("r", o.key, o.size)
        server.reload()
        assert len(client.get_system_shared_memory_status()) == 1
        ask(api, client, place=("r", 16), out=("r", 16, 64))
        assert o[64:80] == VALUES.tobytes()
        server.write_config(parts="all")
        server.reload()
    assert process.wait_until(lambda: mapped(server, o.key) == 0, 20)
    server.write_config(parts="all shared_memory")
    server.reload()
    with rest_of(server) as client:
        assert process.wait_until(
            lambda: server.get("/v2/systemsharedmemory/status").status == 200,
            20)
        assert client.get_system_shared_memory_status() == []
        client.register_system_shared_memory("r", o.key, o.size)
        ask(api, client, place=("r", 16))
