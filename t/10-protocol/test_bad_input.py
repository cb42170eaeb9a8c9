"""Each bad request gets a clear error, and all else works."""

import json
import struct
import time

import pytest

from lib.wire import request_bytes, tensor

ONE = tensor("IN", "INT32", [2], [1, 2])


def good(**changes):
    entry = dict(ONE, **changes)
    return {"inputs": [{k: v for k, v in entry.items() if v is not None}]}


def with_top(**top):
    return dict(good(), **top)


def without(field):
    return {"inputs": [{k: v for k, v in ONE.items() if k != field}]}


def two(a, b):
    return json.dumps({"inputs": [a, b]})


# name: (model, header as dict, str or bytes, status, words of the message)
JSON_ERRORS = {
    # the text itself
    "empty object": ("id_int32", {}, 400, ["inputs"]),
    "cut short": ("id_int32", '{"inputs":[', 400, ["parse"]),
    "only a brace": ("id_int32", "{", 400, ["parse"]),
    "no JSON": ("id_int32", "hello", 400, ["parse"]),
    "a number": ("id_int32", "12", 400, []),
    "an array": ("id_int32", "[]", 400, []),
    "a null": ("id_int32", "null", 400, []),
    "trailing comma": ("id_int32", '{"inputs":[],}', 400, ["parse"]),
    "trailing bytes": ("id_int32", json.dumps(good()) + "x", 400, []),
    "second document": ("id_int32", json.dumps(good()) * 2, 400, []),
    "trailing NUL": ("id_int32", json.dumps(good()) + "\0", 400, []),
    "single quotes": ("id_int32", "{'inputs':[]}", 400, ["parse"]),
    "comment": ("id_int32", '{"inputs":[]/*x*/}', 400, ["parse"]),
    "bad UTF-8 in a name": (
        "id_int32", b'{"inputs":[{"name":"I\xffN","datatype":"INT32",'
        b'"shape":[1],"data":[1]}]}', 400, []),
    "control character in a string": (
        "id_int32", '{"inputs":[],"id":"a\nb"}', 400, []),
    "lone surrogate": (
        "id_int32", '{"inputs":[],"id":"\\ud800"}', 400, []),
    "bad escape": ("id_int32", '{"inputs":[],"id":"\\q"}', 400, []),
    "two byte order marks": (
        "id_int32", b"\xef\xbb\xbf" * 2 + json.dumps(good()).encode(), 400,
        ["Invalid value. at 3"]),
    "half a byte order mark": (
        "id_int32", b"\xef\xbb" + json.dumps(good()).encode(), 400, []),
    "UTF-16": ("id_int32", json.dumps(good()).encode("utf-16"), 400, []),

    # inputs
    "inputs missing": ("id_int32", {"id": "x"}, 400, ["inputs"]),
    "inputs null": ("id_int32", {"inputs": None}, 400, ["inputs"]),
    "inputs an object": ("id_int32", {"inputs": {}}, 400, ["inputs"]),
    "inputs a string": ("id_int32", {"inputs": "IN"}, 400, ["inputs"]),
    "inputs empty": ("id_int32", {"inputs": []}, 400,
                     ["expected 1 inputs but got 0", "IN"]),
    "input a number": ("id_int32", {"inputs": [5]}, 400, []),
    "input null": ("id_int32", {"inputs": [None]}, 400, []),
    "inputs twice": ("id_int32", '{"inputs":[],"inputs":[]}', 400,
                     ["inputs"]),

    # name
    "name missing": ("id_int32", without("name"), 400, ["name"]),
    "name a number": ("id_int32", good(name=5), 400, ["name"]),
    "name empty": ("id_int32", good(name=""), 400, []),
    "name unknown": ("id_int32", good(name="ghost"), 400, ["ghost"]),
    "name huge": ("id_int32", good(name="x" * 200_000), 400, []),
    "name twice": ("id_int32", '{"inputs":[{"name":"IN","name":"IN",'
                   '"datatype":"INT32","shape":[1],"data":[1]}]}', 400, []),
    "input twice": ("id_int32", two(ONE, ONE), 400, ["IN", "already"]),
    "one too many": ("id_int32", two(ONE, dict(ONE, name="MORE")), 400,
                     ["MORE"]),
    "one of two": ("id_pair", {"inputs": [dict(ONE, name="IN0")]}, 400,
                   ["expected 2 inputs but got 1", "IN1"]),

    # datatype
    "datatype missing": ("id_int32", without("datatype"), 400, ["datatype"]),
    "datatype a number": ("id_int32", good(datatype=7), 400, ["datatype"]),
    "datatype unknown": ("id_int32", good(datatype="INT33"), 400, ["IN"]),
    "datatype in lower case": ("id_int32", good(datatype="int32"), 400,
                               ["IN"]),
    "datatype of the config": ("id_int32", good(datatype="TYPE_INT32"), 400,
                               ["IN"]),
    "datatype another": ("id_int32", good(datatype="INT64"), 400,
                         ["IN", "INT64", "INT32"]),

    # shape
    "shape missing": ("id_int32", without("shape"), 400, ["shape"]),
    "shape a number": ("id_int32", good(shape=2), 400, ["shape"]),
    "shape of strings": ("id_int32", good(shape=["2"]), 400, ["shape"]),
    "shape of fractions": ("id_int32", good(shape=[2.0]), 400, ["shape"]),
    "shape nested": ("id_int32", good(shape=[[2]]), 400, ["shape"]),
    "shape null": ("id_int32", good(shape=[None]), 400, ["shape"]),
    "shape negative": ("id_int32", good(shape=[-2]), 400, ["shape"]),
    "shape minus one": ("id_int32", good(shape=[-1]), 400, ["shape"]),
    "shape huge": ("id_int32", good(shape=[2**63]), 400, []),
    "shape beyond 64 bit": ("id_int32", good(shape=[2**64]), 400, []),
    "shape 1e400": ("id_int32", json.dumps(good()).replace("[2]", "[1e400]"),
                    400, []),
    "shape whose product overflows": (
        "id_any", {"inputs": [tensor("IN", "FP32", [2**32, 2**32], [1])]},
        400, ["causes total element count to exceed maximum size of",
              "'IN'"]),
    "shape whose bytes overflow": (
        "id_any", {"inputs": [tensor("IN", "FP32", [2**62, 1], [1])]},
        400, ["byte size overflow for input 'IN'"]),
    "shape whose product wraps to the data": (
        "id_any", {"inputs": [tensor("IN", "FP32", [2**63 + 1, 2], [1, 2])]},
        400, []),
    "shape with one more dimension": ("id_int32", good(shape=[1, 2]), 400,
                                      ["IN", "[1,2]"]),
    "shape without dimensions": ("id_int32", good(shape=[]), 400, ["IN"]),
    "shape with a million dimensions": (
        "id_int32", good(shape=[1] * 1_000_000), 400, []),
    "shape another": (
        "id_fixed", {"inputs": [tensor("IN", "INT32", [3, 2], [0] * 6)]},
        400, ["IN", "[2,3]", "[3,2]"]),
    "batch too large": (
        "id_batch", {"inputs": [tensor("IN", "FP32", [9, 4], [0] * 36)]},
        400, ["8", "id_batch"]),
    "batch missing": (
        "id_batch", {"inputs": [tensor("IN", "FP32", [4], [0] * 4)]},
        400, ["IN"]),

    # data
    "data missing": ("id_int32", without("data"), 400, []),
    "data null": ("id_int32", '{"inputs":[{"name":"IN","datatype":"INT32",'
                  '"shape":[2],"data":null}]}', 400, []),
    "data a number": ("id_int32", good(data=1), 400, ["data"]),
    "data an object": ("id_int32", good(data={}), 400, ["data"]),
    "data a string": ("id_int32", good(data="12"), 400, ["data"]),
    "data too few": ("id_int32", good(data=[1]), 400, ["data"]),
    "data too many": ("id_int32", good(data=[1, 2, 3]), 400, ["data"]),
    "data empty": ("id_int32", good(data=[]), 400, ["data"]),
    "data of fractions": ("id_int32", good(data=[1.0, 2]), 400, ["data"]),
    "data of strings": ("id_int32", good(data=["1", "2"]), 400, ["data"]),
    "data of booleans": ("id_int32", good(data=[True, False]), 400,
                         ["data"]),
    "data with null": ("id_int32", good(data=[1, None]), 400, ["data"]),
    "data with objects": ("id_int32", good(data=[{}, {}]), 400, []),
    "data NaN for integers": ("id_int32", good(data=[float("nan"), 1]), 400,
                              []),
    "data out of range": ("id_int32", good(data=[2**31, 0]), 400, []),
    "data beyond a double": (
        "id_fp32", '{"inputs":[{"name":"IN","datatype":"FP32",'
        '"shape":[2],"data":[1,-1e400]}]}', 400,
        ["Number too big to be stored in double", "element 1"]),
    "data below the range": (
        "id_uint8", {"inputs": [tensor("IN", "UINT8", [1], [-1])]}, 400, []),
    "data beyond 64 bit": (
        "id_uint64", {"inputs": [tensor("IN", "UINT64", [1], [2**64])]},
        400, []),
    "data booleans as numbers": (
        "id_bool", {"inputs": [tensor("IN", "BOOL", [1], [1])]}, 400, []),
    "data numbers as strings": (
        "id_bytes", {"inputs": [tensor("IN", "BYTES", [1], [1])]}, 400, []),
    "data with an unclosed array": (
        "id_int32", '{"inputs":[{"name":"IN","datatype":"INT32","shape":[2],'
        '"data":[1,[2]}]}', 400, []),
    "data with a bad number": (
        "id_int32", '{"inputs":[{"name":"IN","datatype":"INT32","shape":[2],'
        '"data":[1,02]}]}', 400, []),
    "data with a plus sign": (
        "id_int32", '{"inputs":[{"name":"IN","datatype":"INT32","shape":[2],'
        '"data":[1,+2]}]}', 400, []),
    "data with a hexadecimal number": (
        "id_int32", '{"inputs":[{"name":"IN","datatype":"INT32","shape":[2],'
        '"data":[1,0x2]}]}', 400, []),
    "data with a double comma": (
        "id_int32", '{"inputs":[{"name":"IN","datatype":"INT32","shape":[2],'
        '"data":[1,,2]}]}', 400, []),
    "data 200 deep": (
        "id_int32", '{"inputs":[{"name":"IN","datatype":"INT32","shape":[1],'
        '"data":' + "[" * 200 + "1" + "]" * 200 + "}]}", 400, []),
    "data a million deep": (
        "id_int32", '{"inputs":[{"name":"IN","datatype":"INT32","shape":[1],'
        '"data":' + "[" * 1_000_000, 400, []),
    "FP16 as JSON": (
        "id_fp16", {"inputs": [tensor("IN", "FP16", [1], [1])]}, 400,
        ["receiving FP16 data via JSON is not supported", "IN"]),
    "BF16 as JSON": (
        "id_bf16", {"inputs": [tensor("IN", "BF16", [1], [1])]}, 400,
        ["receiving BF16 data via JSON is not supported", "IN"]),

    # where the data is
    "data and binary size": (
        "id_int32", good(parameters={"binary_data_size": 8}), 400,
        ["IN", "binary_data_size"]),
    "unknown shared memory": (
        "id_int32", good(data=None, parameters={
            "shared_memory_region": "r", "shared_memory_byte_size": 8}),
        (400, 404, 501), ["shared memory"]),
    "binary size negative": (
        "id_int32", good(data=None, parameters={"binary_data_size": -8}),
        400, ["binary_data_size"]),
    "binary size a string": (
        "id_int32", good(data=None, parameters={"binary_data_size": "8"}),
        400, ["binary_data_size"]),
    "binary size huge": (
        "id_int32", good(data=None, parameters={"binary_data_size": 2**63}),
        400, []),
    "binary size beyond 64 bit": (
        "id_int32", good(data=None, parameters={"binary_data_size": 2**65}),
        400, []),
    "binary data promised, none sent": (
        "id_int32", good(data=None, parameters={"binary_data_size": 8}),
        400, ["IN", "8"]),
    "parameters of an input an array": (
        "id_int32", good(parameters=[]), 400, ["parameters"]),

    # parameters
    "parameters an array": ("id_int32", with_top(parameters=[]), 400,
                            ["request params."]),
    "parameter an object": ("id_int32", with_top(parameters={"a": {}}), 400,
                            ["a"]),
    "parameter an array": ("id_int32", with_top(parameters={"a": [1]}), 400,
                           ["a"]),
    "parameter null": ("id_int32", with_top(parameters={"a": None}), 400,
                       ["a"]),
    "parameter of ours": (
        "id_int32", with_top(parameters={"triton_x": 1}), 400,
        ["triton_"]),
    "sequence id negative": (
        "id_int32", with_top(parameters={"sequence_id": -1}), 400,
        ["sequence_id"]),
    "sequence id a fraction": (
        "id_int32", with_top(parameters={"sequence_id": 1.5}), 400,
        ["sequence_id"]),
    "sequence id too long": (
        "id_int32", with_top(parameters={"sequence_id": "x" * 129}), 501,
        ["128"]),
    "sequence start a number": (
        "id_int32", with_top(parameters={"sequence_start": 1}), 400,
        ["sequence_start"]),
    "priority negative": (
        "id_int32", with_top(parameters={"priority": -1}), 400,
        ["priority"]),
    "priority beyond 64 bits": (
        "id_int32", with_top(parameters={"priority": 1 << 64}), 400,
        ["priority"]),
    "timeout negative": (
        "id_int32", with_top(parameters={"timeout": -1}), 400, ["timeout"]),
    "timeout a fraction": (
        "id_int32", with_top(parameters={"timeout": 1.5}), 400, ["timeout"]),
    "timeout a string": (
        "id_int32", with_top(parameters={"timeout": "1"}), 400, ["timeout"]),
    "binary_data_output a number": (
        "id_int32", with_top(parameters={"binary_data_output": 1}), 400,
        ["binary_data_output"]),
    "id a number": ("id_int32", with_top(id=5), 400, ["id"]),
    "id huge": ("id_int32", with_top(id="x" * 1_000_000), 400, []),
    "a hundred thousand parameters": (
        "id_int32", with_top(parameters={
            f"p{i}": i for i in range(100_000)}), 400, []),

    # outputs
    "outputs an object": ("id_int32", with_top(outputs={}), 400,
                          ["outputs"]),
    "output a string": ("id_int32", with_top(outputs=["OUT"]), 400, []),
    "output without a name": ("id_int32", with_top(outputs=[{}]), 400,
                              ["name"]),
    "output name a number": ("id_int32", with_top(outputs=[{"name": 1}]),
                             400, ["name"]),
    "output unknown": ("id_int32", with_top(outputs=[{"name": "ghost"}]),
                       400, ["ghost", "id_int32"]),
    "output binary a number": (
        "id_int32", with_top(outputs=[
            {"name": "OUT", "parameters": {"binary_data": 1}}]), 400,
        ["binary_data"]),
    "classification negative": (
        "id_int32", with_top(outputs=[
            {"name": "OUT", "parameters": {"classification": -1}}]), 400,
        ["classification"]),
    "classification a string": (
        "id_int32", with_top(outputs=[
            {"name": "OUT", "parameters": {"classification": "1"}}]), 400,
        ["classification"]),
    "classification huge": (
        "id_int32", with_top(outputs=[
            {"name": "OUT", "parameters": {"classification": 2**70}}]), 400,
        ["classification"]),
    "output in unknown shared memory": (
        "id_int32", with_top(outputs=[{"name": "OUT", "parameters": {
            "shared_memory_region": "r", "shared_memory_byte_size": 8}}]),
        (400, 404, 501), ["shared memory"]),
    "a million outputs": (
        "id_int32", with_top(outputs=[{"name": "OUT"}] * 1_000_000), 400,
        []),
    "a million unknown outputs": (
        "id_int32", with_top(outputs=[
            {"name": f"o{i}"} for i in range(1_000_000)]), 400, []),
    "a million inputs": (
        "id_int32", {"inputs": [{"name": f"i{i}", "datatype": "INT32",
                                 "shape": [0], "data": []}
                                for i in range(200_000)]}, 400, []),
}


def still_works(connection):
    """The same connection, or a new one where the server said it closes."""
    answer = connection.infer("id_int32", {"inputs": [ONE]})
    assert answer.status == 200, answer
    assert answer.json()["outputs"][0]["data"] == [1, 2]


def check(answer, status, words):
    allowed = status if isinstance(status, tuple) else (status,)
    assert answer.status in allowed, answer
    text = answer.error
    assert list(answer.json()) == ["error"]
    assert text and len(text) < 2000
    for word in words:
        assert word.lower() in text.lower(), text


@pytest.mark.parametrize("name", JSON_ERRORS)
def test_bad_json(server, name):
    model, header, status, words = JSON_ERRORS[name]
    if isinstance(header, dict):
        header = json.dumps(header)
    if isinstance(header, str):
        header = header.encode()
    began = time.monotonic()
    with server.wire() as connection:
        check(connection.infer(model, header), status, words)
        still_works(connection)
    assert time.monotonic() - began < 20


def test_unknown_member_may_be_deeply_nested_or_is_rejected(server):
    deep = b"[" * 100_000 + b"]" * 100_000
    body = json.dumps(good()).encode()[:-1] + b',"extra":' + deep + b"}"
    with server.wire() as connection:
        answer = connection.infer("id_int32", body)
        assert answer.status in (200, 400), answer
        still_works(connection)


def test_fp16_output_as_json_is_400(server):
    for datatype in ("FP16", "BF16"):
        with server.wire() as connection:
            answer = connection.infer(
                "id_" + datatype.lower(),
                {"inputs": [tensor("IN", datatype, [1],
                                   binary_data_size=2)]}, b"\0\0")
            check(answer, 400, [f"sending {datatype} data via JSON"])
            still_works(connection)


# ---- binary tails and lengths

def binary(size, shape=(2,)):
    return {"inputs": [tensor("IN", "INT32", shape, binary_data_size=size)]}


@pytest.mark.parametrize("header,tail,words", [
    (binary(8), bytes(7), ["IN"]), (binary(8), bytes(9), []),
    (binary(7), bytes(7), ["IN", "8", "7"]),
    (binary(12), bytes(12), ["IN", "8", "12"]),
    (binary(4, (2**62,)), bytes(4), []),
    (binary(0), b"x", []), (binary(8), b"", ["IN"])])
def test_binary_sizes_that_do_not_add_up(server, header, tail, words):
    body = json.dumps(header).encode()
    with server.wire() as connection:
        answer = connection.infer(
            "id_int32", body, tail,
            {"Inference-Header-Content-Length": str(len(body))})
        check(answer, 400, words)
        still_works(connection)


@pytest.mark.parametrize("value", ["-1", "x", "", "1x", "0x10", "1e3",
                                   "99999999", "18446744073709551617",
                                   "9223372036854775808", "2 3"])
def test_bad_header_length(server, value):
    with server.wire() as connection:
        answer = connection.infer(
            "id_int32", binary(8), bytes(8),
            {"Inference-Header-Content-Length": value})
        if value != "":
            check(answer, 400, ["header"])
        else:
            assert answer.status == 400
        still_works(connection)


def test_header_length_that_cuts_the_json(server):
    body = json.dumps(binary(8)).encode()
    with server.wire() as connection:
        for length in range(1, len(body), 9):
            answer = connection.infer(
                "id_int32", body, bytes(8),
                {"Inference-Header-Content-Length": str(length)})
            check(answer, 400, [])
        still_works(connection)


def test_missing_header_length_with_binary_data(server):
    with server.wire() as connection:
        for tail in (b"\1\2\3\4\5\6\7\x08", bytes(8)):
            body = json.dumps(binary(8)).encode() + tail
            check(connection.post("/v2/models/id_int32/infer", body), 400, [])
        still_works(connection)


@pytest.mark.parametrize("data,count", [
    (struct.pack("<I", 5) + b"abc", 1), (b"\1\0", 1),
    (struct.pack("<I", 0xffffffff) + b"abc", 1),
    (struct.pack("<I", 1) + b"a", 2),
    (struct.pack("<I", 1) + b"a" + struct.pack("<I", 1) + b"b", 1),
    (b"", 1)])
def test_broken_bytes_tensor(server, data, count):
    body = json.dumps({"inputs": [tensor(
        "IN", "BYTES", [count], binary_data_size=len(data))]}).encode()
    with server.wire() as connection:
        answer = connection.infer(
            "id_bytes", body, data,
            {"Inference-Header-Content-Length": str(len(body))})
        check(answer, 400, ["IN"])
        still_works(connection)


def test_empty_body(server):
    """Raw binary mode: an empty tensor, which only some models take."""
    with server.wire() as connection:
        check(connection.post("/v2/models/id_fixed/infer", b""), 400, [])
        still_works(connection)
        answer = connection.post("/v2/models/id_int32/infer", b"")
        assert answer.status in (200, 400), answer
        still_works(connection)


# ---- which model

@pytest.mark.parametrize("path,status,text", [
    ("/v2/models/ghost/infer", 404,
     "Request for unknown model: 'ghost' is not found"),
    ("/v2/models/id_int32/versions/5/infer", 404,
     "Request for unknown model: 'id_int32' version 5 is not found"),
    ("/v2/models/id_int32/versions/99999999999999999999/infer", 400,
     "99999999999999999999"),
    ("/v2/models/" + "x" * 1000 + "/infer", 404, "is not found")])
def test_unknown_model(server, path, status, text):
    with server.wire() as connection:
        answer = connection.post(path, json.dumps(good()).encode())
        assert answer.status == status, answer
        assert text in answer.error
        still_works(connection)


def test_large_body_for_an_unknown_model(server):
    size = 5_000_000
    head = {"inputs": [tensor("IN", "UINT8", [size], binary_data_size=size)]}
    with server.wire() as connection:
        answer = connection.infer("ghost", head, bytes(size))
        assert answer.status == 404, answer
        still_works(connection)
    with server.wire() as connection:
        still_works(connection)


# ---- the connection

def test_body_cut_short_by_the_client(server):
    whole = request_bytes("POST", "/v2/models/id_int32/infer",
                          json.dumps(good()).encode())
    start = whole.index(b"\r\n\r\n") + 4
    for cut in range(start, len(whole), 5):
        with server.wire() as connection:
            connection.send(whole[:cut])
    with server.wire() as connection:
        still_works(connection)


@pytest.mark.parametrize("data", [
    b"GET\r\n\r\n", b"\0\0\0\0\r\n\r\n",
    b"POST /v2/models/id_int32/infer HTTP/1.1\r\nHost: x\r\n"
    b"Content-Length: -5\r\n\r\n",
    b"POST /v2/models/id_int32/infer HTTP/1.1\r\nHost: x\r\n"
    b"Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
    b"POST /v2/models/id_int32/infer HTTP/1.1\r\nHost: x\r\n"
    b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n"])
def test_broken_http(server, data):
    with server.wire() as connection:
        connection.send(data)
        answer = connection.read()
        assert 400 <= answer.status < 600
    with server.wire() as connection:
        still_works(connection)


def test_backend_error_keeps_its_text_and_harms_nobody(make_server):
    from lib import models

    def fill(repository):
        models.standard_repository(repository)
        models.identity(repository, "fails", [("IN", "INT32", [-1])],
                        parameters={"fail_execute": "wheels came off"})

    server = make_server(fill)
    with server.wire() as connection:
        for _ in range(5):
            check(connection.infer("fails", good()), 500,
                  ["wheels came off"])
            still_works(connection)
