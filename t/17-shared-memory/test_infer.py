"""Tensors in shared memory: read and written in place, at every edge of a
region, by tritonclient's own utilities."""

import struct

import numpy
import pytest
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException
from tritonclient.utils import shared_memory as shm

from lib import models
from lib.grpc_client import Client, Failure, output, tensor
from lib.regions import VALUES, ask, error_of, fill, text_of
from lib.wire import tensor as rest_tensor


def test_both_ways(api, client):
    handle = shm.create_shared_memory_region("r", "/inf-t-both", 4096)
    try:
        shm.set_shared_memory_region(handle, [VALUES])
        client.register_system_shared_memory("r", "/inf-t-both", 4096)
        answer = ask(api, client, place=("r", 16), out=("r", 16, 1024))
        got = shm.get_contents_as_numpy(handle, numpy.int32, [4], 1024)
        assert got.tolist() == VALUES.tolist()
        if api is tritonclient.http:
            assert answer.get_output("OUT") == {
                "name": "OUT", "datatype": "INT32", "shape": [4]}
        else:
            out = answer.get_output("OUT")
            assert not out.parameters and not out.HasField("contents")
            assert list(answer.get_response().raw_output_contents) == [b""]
    finally:
        shm.destroy_shared_memory_region(handle)


@pytest.mark.parametrize("datatype", models.ALL_DATATYPES)
def test_every_datatype(api, client, new_object, datatype):
    data = b"".join(struct.pack("<I", n) + b"x" * n for n in (0, 1, 300)) \
        if datatype == "BYTES" else bytes(models.SIZE[datatype] * 3)
    o = new_object(content=data)
    client.register_system_shared_memory("r", o.key, o.size)
    ask(api, client, "id_" + datatype.lower(), shape=(3,), datatype=datatype,
        place=("r", len(data)), out=("r", 1000, 4096))
    assert o[4096:4096 + len(data)] == data


def test_one_way_at_a_time(api, client, new_object):
    o = new_object(content=VALUES.tobytes())
    client.register_system_shared_memory("r", o.key, o.size)
    answer = ask(api, client, place=("r", 16))
    assert answer.as_numpy("OUT").tolist() == VALUES.tolist()
    ask(api, client, data=VALUES * 0 + 3, out=("r", 64, 64))
    assert o[64:96] == struct.pack("<4i", 3, 3, 3, 3) + bytes(16)


def test_inputs_of_each_kind_in_one_request(api, client, new_object):
    """Entries of raw_input_contents are for the other inputs alone, and an
    empty one is for each output in a region."""
    words = b"\3\0\0\0abc\0\0\0\0"
    o = new_object(content=VALUES.tobytes() + words)
    client.register_system_shared_memory("r", o.key, o.size)
    for region, other in (("IN0", "IN1"), ("IN1", "IN0")):
        inputs = [api.InferInput("IN0", [4], "INT32"),
                  api.InferInput("IN1", [2], "BYTES")]
        if region == "IN0":
            inputs[0].set_shared_memory("r", 16)
            inputs[1].set_data_from_numpy(numpy.array([b"x", b"yz"],
                                                      numpy.object_))
        else:
            inputs[1].set_shared_memory("r", len(words), 16)
            inputs[0].set_data_from_numpy(VALUES)
        outputs = [api.InferRequestedOutput("OUT0"),
                   api.InferRequestedOutput("OUT1")]
        outputs[region == "IN1"].set_shared_memory("r", 100, 4096)
        answer = client.infer("two", inputs, outputs=outputs)
        want = VALUES.tobytes() if region == "IN0" else words
        assert o[4096:4096 + len(want)] == want
        out = answer.as_numpy(other.replace("IN", "OUT"))
        assert out.tolist() == ([b"x", b"yz"] if other == "IN1"
                                else VALUES.tolist())


def test_requests_of_both_workers(server, api, client, new_object):
    o = new_object(content=VALUES.tobytes())
    client.register_system_shared_memory("r", o.key, o.size)
    pids = set()
    for _ in range(60):
        with server.wire() as connection:
            answer = connection.infer("id_int32", {"inputs": [rest_tensor(
                "IN", "INT32", [4], shared_memory_region="r",
                shared_memory_byte_size=16)]})
            assert answer.status == 200, answer
            assert answer.json()["outputs"][0]["data"] == VALUES.tolist()
            pids.add(answer.headers["x-worker"])
    assert len(pids) == 2


def test_a_stream(server, new_object):
    o = new_object(content=VALUES.tobytes())
    with tritonclient.grpc.InferenceServerClient(
            f"127.0.0.1:{server.port2}") as client:
        client.register_system_shared_memory("r", o.key, o.size)
        got = []
        client.start_stream(lambda result, error: got.append(error or result))
        for i in range(3):
            given = tritonclient.grpc.InferInput("IN", [4], "INT32")
            given.set_shared_memory("r", 16)
            asked = tritonclient.grpc.InferRequestedOutput("OUT")
            asked.set_shared_memory("r", 16, 64 + 16 * i)
            client.async_stream_infer("id_int32", [given], outputs=[asked])
        client.stop_stream()
        client.unregister_system_shared_memory()
    assert len(got) == 3 and not any(
        isinstance(g, InferenceServerException) for g in got), got
    assert o[64:112] == VALUES.tobytes() * 3


# ---- ranges

@pytest.mark.parametrize("offset,size,words", [
    (0, 8193, "Invalid offset + byte size for"),
    (8192, 16, "Invalid offset for"),
    (8192, 0, "Invalid offset for"),
    (8191, 2, "Invalid offset + byte size for"),
    (2**63 - 1, 16, "Invalid offset for"),
    (16, 2**63 - 1, "Invalid offset + byte size for"),
    (2**63 - 1, 2**63 - 1, "Invalid offset for"),
    (8176, 17, "Invalid offset + byte size for")])
def test_ranges_outside(api, client, new_object, offset, size, words):
    o = new_object(content=VALUES.tobytes())
    client.register_system_shared_memory("r", o.key, o.size)
    words += " shared memory region: 'r'"
    assert text_of(api, ask, api, client, place=("r", size, offset)) == words
    assert text_of(api, ask, api, client, data=VALUES,
                   out=("r", size, offset)) == words


@pytest.mark.parametrize("offset,size", [
    (2**64 - 1, 2), (2**64 - 16, 16), (2**64 - 16, 32), (16, 2**64 - 16),
    (16, 2**64 - 1), (0, 2**64 - 1), (2**63, 2**63)])
def test_ranges_that_wrap(server, rest, new_object, offset, size):
    """gRPC's numbers are smaller: REST alone can say these."""
    o = new_object(content=VALUES.tobytes())
    rest.register_system_shared_memory("r", o.key, o.size)
    there = {"shared_memory_region": "r", "shared_memory_offset": offset,
             "shared_memory_byte_size": size}
    words = "Invalid offset"
    if offset < o.size and offset + size >= 2**64:
        words = f"Integer overflow detected: byte_size ({size}) + offset " \
            f"({offset}) exceeds maximum value ({2**64 - 1}) for region 'r'"
    answer = server.infer("id_int32", {"inputs": [
        rest_tensor("IN", "INT32", [4], **there)]})
    assert answer.status == 400
    assert words in answer.error
    answer = server.infer("id_int32", {
        "inputs": [rest_tensor("IN", "INT32", [1], [1])],
        "outputs": [{"name": "OUT", "parameters": there}]})
    assert answer.status == 400
    assert words in answer.error


@pytest.mark.parametrize("offset", [0, 1, 3, 4080, 8176])
def test_the_whole_region_is_there(api, client, new_object, offset):
    """At any alignment, to the last byte."""
    o = new_object()
    o[offset:offset + 16] = VALUES.tobytes()
    client.register_system_shared_memory("r", o.key, o.size)
    to = 8176 - offset
    if abs(to - offset) < 16:
        to = 100
    ask(api, client, place=("r", 16, offset), out=("r", 16, to))
    assert o[to:to + 16] == VALUES.tobytes()


@pytest.mark.parametrize("place,to", [(0, 4), (4, 0), (64, 64), (8, 100)])
def test_an_output_over_its_input(api, client, new_object, place, to):
    """The client may choose the same bytes for both, or some of them."""
    values = numpy.arange(1000, dtype=numpy.int32)
    o = new_object()
    o[place:place + 4000] = values.tobytes()
    client.register_system_shared_memory("r", o.key, o.size)
    ask(api, client, shape=(1000,), place=("r", 4000, place),
        out=("r", 4000, to))
    assert o[to:to + 4000] == values.tobytes()


def test_a_region_that_begins_inside_its_object(api, client, new_object):
    o = new_object(3 * 4096)
    o[4096:4112] = VALUES.tobytes()
    client.register_system_shared_memory("r", o.key, 4096, offset=4096)
    ask(api, client, place=("r", 16), out=("r", 16, 32))
    assert o[4128:4144] == VALUES.tobytes()
    assert "Invalid offset" in text_of(api, ask, api, client,
                                       place=("r", 16, 4096))
    # what is not a whole page is not in reach either
    client.register_system_shared_memory("s", o.key, 20, offset=4096)
    assert "Invalid offset + byte size" in text_of(
        api, ask, api, client, place=("s", 16, 8))


# ---- what is rejected

def test_a_region_that_is_none(api, client):
    words = "Unable to find shared memory region: 'nobody'"
    status, text = error_of(api, ask, api, client, place=("nobody", 16))
    assert status in ("404", "NOT_FOUND") and words in text
    status, text = error_of(api, ask, api, client, data=VALUES,
                            out=("nobody", 16))
    assert status in ("404", "NOT_FOUND") and words in text


@pytest.mark.parametrize("size", [0, 1, 15])
def test_an_output_that_does_not_fit(api, client, new_object, size):
    o = new_object()
    client.register_system_shared_memory("r", o.key, o.size)
    status, text = error_of(api, ask, api, client, data=VALUES,
                            out=("r", size))
    assert status in ("500", "INTERNAL")
    assert f"shared memory size specified with the request for output 'OUT'" \
        f" ({size} bytes) should be at least 16 bytes to hold the results" \
        in text
    assert o[0:16] == bytes(16)


@pytest.mark.parametrize("size", [12, 20])
def test_an_input_of_another_size(api, client, new_object, size):
    o = new_object()
    client.register_system_shared_memory("r", o.key, o.size)
    assert "byte size mismatch for input 'IN'" in text_of(
        api, ask, api, client, place=("r", size))


@pytest.mark.parametrize("data", [
    b"\4\0\0\0abc\0\1\0\0\0", b"\xff\xff\xff\xff" + bytes(8), b"\0" * 12])
def test_strings_are_checked(api, client, new_object, data):
    o = new_object(content=data)
    client.register_system_shared_memory("r", o.key, o.size)
    status, text = error_of(api, ask, api, client, "id_bytes", shape=(2,),
                            datatype="BYTES", place=("r", len(data)))
    assert status in ("400", "INVALID_ARGUMENT")
    assert "for inference input 'IN'" in text


@pytest.mark.parametrize("count", [2, 3, 66, 200])
def test_more_inputs_than_the_model_has(server, rest, new_object, count):
    """Each of them in a region, the last ones alone, and beside an output."""
    o = new_object(content=VALUES.tobytes())
    rest.register_system_shared_memory("r", o.key, o.size)
    core = server.core()
    there = {"shared_memory_region": "r", "shared_memory_byte_size": 16}
    for first in (0, 1, count - 1):
        for outputs in ([], [{"name": "OUT", "parameters": there}]):
            answer = server.infer("id_int32", {"outputs": outputs, "inputs": [
                rest_tensor(f"IN{i or ''}", "INT32", [4], **(
                    there if i >= first else {"data": VALUES.tolist()}))
                for i in range(count)]})
            assert answer.status == 400, answer
            assert "input" in answer.error
    assert server.core() == core


@pytest.mark.parametrize("option", [{"binary_data": True},
                                    {"classification": 1}])
def test_rest_options_beside_a_region(server, rest, new_object, option):
    o = new_object()
    rest.register_system_shared_memory("r", o.key, o.size)
    answer = server.infer("id_int32", {
        "inputs": [rest_tensor("IN", "INT32", [1], [1])],
        "outputs": [{"name": "OUT", "parameters": dict(
            option, shared_memory_region="r", shared_memory_byte_size=64)}]})
    assert answer.status == 400, answer
    assert "shared_memory_region" in answer.error


@pytest.mark.parametrize("given,asked,words", [
    ({}, None, "'shared_memory_byte_size' must be specified along with"),
    ({"shared_memory_byte_size": 16}, None,
     "unexpected 'content' provided when using shared memory"),
    (None, {"classification": 1, "shared_memory_byte_size": 16},
     "output can't set both 'shared_memory_region' and 'classification'")])
def test_grpc_options_beside_a_region(server, rest, new_object, given, asked,
                                      words):
    o = new_object()
    rest.register_system_shared_memory("r", o.key, o.size)
    there = {"shared_memory_region": "r"}
    with Client(server.port2) as client, pytest.raises(Failure) as caught:
        client.infer("id_int32", tensor(
            "IN", "INT32", [4], {"int_contents": [1, 2, 3, 4]},
            None if given is None else dict(there, **given)),
            outputs=[] if asked is None else [output("OUT", **there,
                                                     **asked)])
    assert words in str(caught.value)


# ---- ensembles, and the response cache

def chain(repository):
    fill(repository)
    for name, datatype in (("words", "BYTES"), ("numbers", "INT32")):
        models.write_model(
            repository, "chain_" + name,
            f'name: "chain_{name}"\nplatform: "ensemble"\n'
            + models.io_block("input", [("IN", datatype, [-1])])
            + models.io_block("output", [("OUT", datatype, [-1]),
                                         ("MID", datatype, [-1])])
            + "ensemble_scheduling { "
            + "".join(f'step {{ model_name: "id_{datatype.lower()}"'
                      ' model_version: -1'
                      f' input_map {{ key: "IN" value: "{a}" }}'
                      f' output_map {{ key: "OUT" value: "{b}" }} }} '
                      for a, b in (("IN", "MID"), ("MID", "OUT"))) + "}\n")


@pytest.mark.parametrize("model,data,shape", [
    ("chain_words", b"\1\0\0\0a\3\0\0\0bcd", [2]),
    ("chain_numbers", VALUES.tobytes(), [4])])
def test_an_ensemble(start, new_object, model, data, shape):
    """A tensor in the middle that goes to the client too, into a region."""
    server = start(chain)
    o = new_object(content=data)
    api = tritonclient.http
    with api.InferenceServerClient(server.url) as client:
        client.register_system_shared_memory("r", o.key, o.size)
        given = api.InferInput("IN", shape, "BYTES" if "words" in model
                               else "INT32")
        given.set_shared_memory("r", len(data))
        outputs = [api.InferRequestedOutput(n) for n in ("MID", "OUT")]
        outputs[0].set_shared_memory("r", 64, 1024)
        outputs[1].set_shared_memory("r", 64, 2048)
        client.infer(model, [given], outputs=outputs)
    for at in (1024, 2048):
        assert o[at:at + len(data)] == data


def test_the_response_cache_is_not_asked(start, new_object):
    """The client could write other bytes between key and execution: its answer
    would be given to others."""
    def cached(repository):
        models.identity(repository, "cached", [("IN", "INT32", [-1])],
                        extra="response_cache { enable: true }\n")

    server = start(cached, http="    inference_response_cache local"
                   " size=1048576;\n", parts="all shared_memory")
    o = new_object(content=VALUES.tobytes())

    def hits():
        stats = server.get("/v2/models/cached/stats").json()["model_stats"][0]
        return tuple(int(stats["inference_stats"][k].get("count", 0))
                     for k in ("cache_hit", "cache_miss"))

    api = tritonclient.http
    with api.InferenceServerClient(server.url) as client:
        client.register_system_shared_memory("r", o.key, o.size)
        for _ in range(2):
            ask(api, client, "cached", data=VALUES)
        before = hits()
        assert before == (1, 1)
        for _ in range(2):
            ask(api, client, "cached", place=("r", 16))
            ask(api, client, "cached", data=VALUES, out=("r", 16, 64))
        assert hits() == before
