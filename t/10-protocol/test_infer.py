"""Inference: JSON, binary, raw, every datatype, every mix."""

import json
import math
import struct

import numpy
import pytest

from lib import models
from lib.wire import Wire, chunked, infer_path, tensor

NUMPY = {"BOOL": numpy.bool_, "UINT8": numpy.uint8, "UINT16": numpy.uint16,
         "UINT32": numpy.uint32, "UINT64": numpy.uint64, "INT8": numpy.int8,
         "INT16": numpy.int16, "INT32": numpy.int32, "INT64": numpy.int64,
         "FP16": numpy.float16, "FP32": numpy.float32, "FP64": numpy.float64}

JSON_VALUES = {
    "BOOL": [True, False, True],
    "UINT8": [0, 1, 255], "UINT16": [0, 65535, 7],
    "UINT32": [0, 4294967295, 7], "UINT64": [0, 18446744073709551615, 7],
    "INT8": [-128, 127, 0], "INT16": [-32768, 32767, 0],
    "INT32": [-2147483648, 2147483647, 0],
    "INT64": [-9223372036854775808, 9223372036854775807, 0],
    "FP32": [1.5, -0.0, 3.25], "FP64": [1e300, -2.5e-300, 0.1],
    "BYTES": ["hello", "", "hé\u0000\"\\\n"],
}


def pack_bytes(values):
    return b"".join(struct.pack("<I", len(v)) + v for v in values)


def unpack_bytes(data):
    values = []
    while data:
        size = struct.unpack_from("<I", data)[0]
        values.append(data[4:4 + size])
        data = data[4 + size:]
    return values


def sample(datatype, count=5):
    """Raw bytes of count elements of the datatype."""
    rng = numpy.random.default_rng(count)
    if datatype == "BYTES":
        return pack_bytes([rng.bytes(i * 3) for i in range(count)])
    if datatype == "BOOL":
        return bytes(i % 2 for i in range(count))
    return rng.bytes(models.SIZE[datatype] * count)


def infer_json(server, model, *inputs, **top):
    answer = server.infer(model, {"inputs": list(inputs), **top})
    assert answer.status == 200, answer
    return answer


# ---- JSON

@pytest.mark.parametrize("datatype", JSON_VALUES)
def test_json_both_ways(server, datatype):
    values = JSON_VALUES[datatype]
    answer = infer_json(server, f"id_{datatype.lower()}",
                        tensor("IN", datatype, [3], values))
    assert answer.headers["content-type"].startswith("application/json")
    assert "inference-header-content-length" not in answer.headers
    data = answer.json()
    assert data["model_name"] == f"id_{datatype.lower()}"
    assert data["model_version"] == "1"
    assert data["outputs"] == [{"name": "OUT", "datatype": datatype,
                                "shape": [3], "data": values}]


def test_json_keys_come_in_order(server):
    answer = infer_json(server, "id_fp32", tensor("IN", "FP32", [1], [1]),
                        id="x")
    assert list(answer.json()) == ["id", "model_name", "model_version",
                                   "outputs"]
    assert list(answer.json()["outputs"][0]) == ["name", "datatype", "shape",
                                                 "data"]


@pytest.mark.parametrize("data", [
    [1, 2, 3, 4, 5, 6], [[1, 2, 3], [4, 5, 6]], [[1, 2], [3, 4], [5, 6]],
    [[[1], [2]], 3, [4, [5, 6]]], [[[[[[1, 2, 3, 4, 5, 6]]]]]]])
def test_json_nesting_need_not_mirror_the_shape(server, data):
    answer = infer_json(server, "id_fixed",
                        tensor("IN", "INT32", [2, 3], data))
    assert answer.json()["outputs"][0]["shape"] == [2, 3]
    assert answer.json()["outputs"][0]["data"] == [1, 2, 3, 4, 5, 6]


def test_json_floats_read_back_exactly(server):
    rng = numpy.random.default_rng(7)
    values = rng.integers(0, 2**32, 3000, dtype=numpy.uint32) \
        .view(numpy.float32)
    values = values[numpy.isfinite(values)]
    answer = infer_json(server, "id_fp32", tensor(
        "IN", "FP32", [len(values)], [float(v) for v in values]))
    got = numpy.array(answer.json()["outputs"][0]["data"], numpy.float32)
    assert (got.view(numpy.uint32) == values.view(numpy.uint32)).all()


def test_json_doubles_read_back_exactly(server):
    rng = numpy.random.default_rng(8)
    values = rng.integers(0, 2**64, 3000, dtype=numpy.uint64) \
        .view(numpy.float64)
    values = values[numpy.isfinite(values)]
    answer = infer_json(server, "id_fp64", tensor(
        "IN", "FP64", [len(values)], [float(v) for v in values]))
    got = numpy.array(answer.json()["outputs"][0]["data"], numpy.float64)
    assert (got.view(numpy.uint64) == values.view(numpy.uint64)).all()


@pytest.mark.parametrize("text,value", [
    ("1", 1.0), ("-0", -0.0), ("1e3", 1000.0), ("1E+3", 1000.0),
    ("1.5e-3", 0.0015),
    ("123456789012345678901234567890", 1.2345678901234568e29),
    ("2.2250738585072011e-308", 2.2250738585072011e-308), ("5e-324", 5e-324),
    ("1.7976931348623157e308", 1.7976931348623157e308),
    ("NaN", math.nan), ("Infinity", math.inf), ("-Infinity", -math.inf)])
def test_json_number_spellings(server, text, value):
    body = (b'{"inputs":[{"name":"IN","datatype":"FP64","shape":[1],'
            b'"data":[' + text.encode() + b"]}]}")
    answer = server.infer("id_fp64", body)
    assert answer.status == 200, answer
    got = answer.json()["outputs"][0]["data"][0]
    assert struct.pack("d", got) == struct.pack("d", value)


def test_json_with_white_space_everywhere(server):
    body = (b' \r\n\t{ "inputs" : [ { "name" : "IN" , "datatype" : "INT32" ,'
            b'"shape" : [ 2 ] , "data" : [ 1 ,\n 2 ] } ] } \n ')
    answer = server.infer("id_int32", body)
    assert answer.json()["outputs"][0]["data"] == [1, 2]


@pytest.mark.parametrize("binary", [False, True])
def test_json_with_a_byte_order_mark(server, binary):
    """However the body arrives."""
    one = {"name": "IN", "datatype": "INT32", "shape": [1]}
    header = b"\xef\xbb\xbf" + json.dumps({"inputs": [
        one | ({"parameters": {"binary_data_size": 4}} if binary
               else {"data": [7]})]}).encode()
    body = header + (struct.pack("i", 7) if binary else b"")
    with server.wire() as connection:
        for size in (len(body), 1):
            answer = connection.post(
                infer_path("id_int32"), chunked(body, size),
                {"Transfer-Encoding": "chunked"}
                | ({"Inference-Header-Content-Length": str(len(header))}
                   if binary else {}))
            assert answer.status == 200, answer
            assert answer.json()["outputs"][0]["data"] == [7]


def test_json_members_in_any_order_and_unknown_ones(server):
    body = (b'{"model_name":"other","extra":{"a":[1,{"b":null}]},"inputs":'
            b'[{"data":[3],"shape":[1],"more":[[]],"datatype":"INT32",'
            b'"name":"IN"}]}')
    answer = server.infer("id_int32", body)
    assert answer.json()["model_name"] == "id_int32"
    assert answer.json()["outputs"][0]["data"] == [3]


def test_json_null_for_parameters_of_tensors(server):
    """As clients write members that they leave out."""
    answer = infer_json(
        server, "id_int32",
        dict(tensor("IN", "INT32", [1], [7]), parameters=None),
        outputs=[{"name": "OUT", "parameters": None}])
    assert answer.json()["outputs"][0]["data"] == [7]


def test_json_string_escapes(server):
    body = (b'{"inputs":[{"name":"IN","datatype":"BYTES","shape":[3],"data":'
            b'["\\u00e9\\ud83d\\ude00","\\/\\b\\f\\n\\r\\t","a\\u0000b"]}]}')
    answer = server.infer("id_bytes", body)
    assert answer.json()["outputs"][0]["data"] == [
        "é\U0001f600", "/\b\f\n\r\t", "a\0b"]


def test_empty_tensor(server):
    for shape, data in ([0], []), ([0], [1, 2]):
        answer = infer_json(server, "id_fp32",
                            tensor("IN", "FP32", shape, data))
        assert answer.json()["outputs"][0]["shape"] == [0]
        assert answer.json()["outputs"][0]["data"] == []


def test_large_json_tensor(server):
    count = 300_000
    values = list(range(count))
    answer = infer_json(server, "id_int32",
                        tensor("IN", "INT32", [count], values))
    assert answer.json()["outputs"][0]["data"] == values


def test_id_is_echoed_if_not_empty(server):
    one = tensor("IN", "FP32", [1], [1])
    assert infer_json(server, "id_fp32", one, id="r-1").json()["id"] == "r-1"
    assert "id" not in infer_json(server, "id_fp32", one, id="").json()
    odd = "quote\" back\\ é \u0001"
    assert infer_json(server, "id_fp32", one, id=odd).json()["id"] == odd


# ---- binary

@pytest.mark.parametrize("datatype", models.ALL_DATATYPES)
def test_binary_both_ways(server, datatype):
    data = sample(datatype)
    answer = server.infer(
        f"id_{datatype.lower()}",
        {"inputs": [tensor("IN", datatype, [5],
                           binary_data_size=len(data))],
         "outputs": [{"name": "OUT", "parameters": {"binary_data": True}}]},
        data)
    assert answer.status == 200, answer
    assert answer.headers["content-type"].startswith(
        "application/octet-stream")
    head, tail = answer.split()
    assert head["outputs"] == [
        {"name": "OUT", "datatype": datatype, "shape": [5],
         "parameters": {"binary_data_size": len(data)}}]
    assert tail == data


@pytest.mark.parametrize("datatype", [d for d in models.ALL_DATATYPES
                                      if d not in ("FP16", "BF16", "BYTES")])
def test_binary_in_json_out(server, datatype):
    values = numpy.array([1, 0, 1, 1, 0], NUMPY[datatype])
    data = values.tobytes()
    answer = server.infer(
        f"id_{datatype.lower()}",
        {"inputs": [tensor("IN", datatype, [5],
                           binary_data_size=len(data))]}, data)
    assert answer.status == 200, answer
    assert answer.json()["outputs"][0]["data"] == values.tolist()


@pytest.mark.parametrize("datatype", list(JSON_VALUES))
def test_json_in_binary_out(server, datatype):
    values = JSON_VALUES[datatype]
    answer = infer_json(
        server, f"id_{datatype.lower()}",
        tensor("IN", datatype, [3], values),
        parameters={"binary_data_output": True})
    tail = answer.split()[1]
    if datatype == "BYTES":
        assert unpack_bytes(tail) == [v.encode() for v in values]
    else:
        assert tail == numpy.array(values, NUMPY[datatype]).tobytes()


def test_listed_output_ignores_binary_data_output(server):
    """An output that is listed is JSON unless it says binary_data itself."""
    answer = infer_json(
        server, "id_int32", tensor("IN", "INT32", [1], [5]),
        parameters={"binary_data_output": True}, outputs=[{"name": "OUT"}])
    assert answer.json()["outputs"][0]["data"] == [5]


@pytest.mark.parametrize("kinds", [("json", "json"), ("json", "binary"),
                                   ("binary", "json"), ("binary", "binary")])
@pytest.mark.parametrize("wanted", [("json", "binary"), ("binary", "json"),
                                    ("binary", "binary")])
def test_every_mix_of_two_inputs_and_outputs(server, kinds, wanted):
    values = {"IN0": ("INT32", [1, -2, 3]), "IN1": ("FP32", [0.5, 2.0])}
    inputs, tail = [], b""
    for (name, (datatype, data)), kind in zip(values.items(), kinds):
        if kind == "json":
            inputs.append(tensor(name, datatype, [len(data)], data))
        else:
            raw = numpy.array(data, NUMPY[datatype]).tobytes()
            inputs.append(tensor(name, datatype, [len(data)],
                                 binary_data_size=len(raw)))
            tail += raw
    outputs = [{"name": name, "parameters": {"binary_data": kind == "binary"}}
               for name, kind in zip(("OUT0", "OUT1"), wanted)]
    answer = server.infer("id_pair", {"inputs": inputs, "outputs": outputs},
                          tail)
    assert answer.status == 200, answer
    head, rest = answer.split()
    got = {}
    for output in head["outputs"]:
        if "data" in output:
            got[output["name"]] = output["data"]
        else:
            size = output["parameters"]["binary_data_size"]
            got[output["name"]] = numpy.frombuffer(
                rest[:size], NUMPY[output["datatype"]]).tolist()
            rest = rest[size:]
    assert rest == b""
    assert got == {"OUT0": [1, -2, 3], "OUT1": [0.5, 2.0]}


def test_binary_blobs_follow_the_order_of_inputs(server):
    ints, floats = struct.pack("<2i", 7, 8), struct.pack("<f", 9)
    answer = server.infer("id_pair", {"inputs": [
        tensor("IN1", "FP32", [1], binary_data_size=4),
        tensor("IN0", "INT32", [2], binary_data_size=8)]}, floats + ints)
    got = {o["name"]: o["data"] for o in answer.json()["outputs"]}
    assert got == {"OUT0": [7, 8], "OUT1": [9.0]}


def test_header_length_without_binary_data(server):
    body = json.dumps({"inputs": [tensor("IN", "INT32", [1], [4])]}).encode()
    answer = server.post("/v2/models/id_int32/infer", body, {
        "Inference-Header-Content-Length": str(len(body))})
    assert answer.json()["outputs"][0]["data"] == [4]


def test_zero_byte_binary_output_stays_json(server):
    answer = infer_json(
        server, "id_fp32", tensor("IN", "FP32", [0], []),
        outputs=[{"name": "OUT", "parameters": {"binary_data": True}}])
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.json()["outputs"][0]["parameters"] == {
        "binary_data_size": 0}


@pytest.mark.parametrize("size", [1, 4096, 65536, 1 << 20, (16 << 20) + 3])
def test_sizes_of_binary_tensors(server, size):
    data = numpy.random.default_rng(size).bytes(size)
    answer = server.infer(
        "id_uint8",
        {"inputs": [tensor("IN", "UINT8", [size], binary_data_size=size)],
         "parameters": {"binary_data_output": True}}, data)
    assert answer.status == 200, answer
    assert answer.split()[1] == data


# ---- raw binary mode

RAW = {"Inference-Header-Content-Length": "0"}


def test_raw_binary_mode(server):
    data = struct.pack("<3f", 0.5, 1, 2)
    answer = server.post("/v2/models/id_fp32/infer", data, RAW)
    assert answer.status == 200, answer
    head, tail = answer.split()
    assert head["outputs"] == [{"name": "OUT", "datatype": "FP32",
                                "shape": [3],
                                "parameters": {"binary_data_size": 12}}]
    assert tail == data


def test_raw_binary_mode_with_a_batch_dimension(server):
    data = struct.pack("<4f", 1, 2, 3, 4)
    answer = server.post("/v2/models/id_batch/infer", data, RAW)
    head, tail = answer.split()
    assert head["outputs"][0]["shape"] == [1, 4]
    assert tail == data


def test_raw_binary_mode_of_a_fixed_shape(server):
    data = struct.pack("<6i", *range(6))
    answer = server.post("/v2/models/id_fixed/infer", data, RAW)
    assert answer.split()[0]["outputs"][0]["shape"] == [2, 3]
    assert answer.split()[1] == data


@pytest.mark.parametrize("model,data,words", [
    ("id_pair", bytes(8), ["id_pair"]),             # two inputs
    ("id_any", bytes(16), []),                      # two variable dims
    ("id_fp32", bytes(6), []),                      # no multiple of 4
    ("id_fixed", bytes(20), []),                    # 24 expected
])
def test_raw_binary_mode_that_does_not_fit(server, model, data, words):
    with server.wire() as connection:
        answer = connection.post(f"/v2/models/{model}/infer", data, RAW)
        assert answer.status == 400, answer
        assert answer.error
        for word in words:
            assert word in answer.error
        assert connection.get("/v2/health/live").status == 200


# ---- requested outputs, parameters, versions

def test_requested_outputs_select(server):
    inputs = [tensor("IN0", "INT32", [1], [1]),
              tensor("IN1", "FP32", [1], [2])]
    for wanted in (["OUT1"], ["OUT0"], ["OUT0", "OUT1"], []):
        answer = infer_json(server, "id_pair", *inputs,
                            outputs=[{"name": w} for w in wanted])
        names = {o["name"] for o in answer.json()["outputs"]}
        assert names == set(wanted or ["OUT0", "OUT1"])


def test_parameters_reach_the_backend_and_come_back(make_server):
    server = make_server(lambda r: models.identity(
        r, "params", [("IN", "FP32", [-1])],
        parameters={"echo_parameters": "true"}))
    sent = {"word": "fi é", "count": -12, "flag": True, "half": 0.5,
            "big": 9223372036854775807, "wide": 9223372036854775808}
    answer = infer_json(server, "params", tensor("IN", "FP32", [1], [1]),
                        parameters=sent)
    got = answer.json()["parameters"]
    assert {k: got[k] for k in sent} == sent
    assert list(answer.json()) == ["model_name", "model_version",
                                   "parameters", "outputs"]
    assert isinstance(got["count"], int) and got["flag"] is True
    assert "parameters" not in infer_json(
        server, "params", tensor("IN", "FP32", [1], [1])).json()


def test_reserved_parameters_are_no_custom_ones(make_server):
    server = make_server(lambda r: models.identity(
        r, "params", [("IN", "FP32", [-1])],
        parameters={"echo_parameters": "true"}))
    answer = infer_json(server, "params", tensor("IN", "FP32", [1], [1]),
                        parameters={"priority": 1, "timeout": 5000000,
                                    "binary_data_output": False, "mine": 1})
    assert answer.json()["parameters"] == {"mine": 1}


def test_version_less_url_takes_the_highest_ready_version(server):
    one = {"inputs": [tensor("IN", "INT32", [1], [1])]}
    assert server.infer("id_versions", one).json()["model_version"] == "3"
    assert server.infer("id_versions", one,
                        version="1").json()["model_version"] == "1"
    assert server.infer("id_versions", one, version="7").status == 404
    assert server.infer("id_versions", one, version="2").status == 404


def test_batch_dimension(server):
    for rows in (1, 3, 8):
        data = [float(i) for i in range(rows * 4)]
        answer = infer_json(server, "id_batch",
                            tensor("IN", "FP32", [rows, 4], data))
        assert answer.json()["outputs"][0]["shape"] == [rows, 4]
        assert answer.json()["outputs"][0]["data"] == data


# ---- classification

def classify(server, model, header, **output):
    header["outputs"] = [{"name": output.pop("name"), "parameters": output}]
    return server.infer(model, header)


def test_classification_with_labels(server):
    answer = classify(
        server, "vision",
        {"inputs": [tensor("PIX", "FP32", [1, 4], [0.25, 9, -1, 3.5])]},
        name="SCORES", classification=2)
    assert answer.status == 200, answer
    assert answer.json()["outputs"] == [
        {"name": "SCORES", "datatype": "BYTES", "shape": [1, 2],
         "data": ["9.000000:1:cat", "3.500000:3:owl"]}]


def test_classification_of_a_batch(server):
    answer = classify(
        server, "vision",
        {"inputs": [tensor("PIX", "FP32", [2, 4],
                           [1, 2, 3, 4, 4, 3, 2, 1])]},
        name="SCORES", classification=1)
    assert answer.json()["outputs"][0]["shape"] == [2, 1]
    assert answer.json()["outputs"][0]["data"] == [
        "4.000000:3:owl", "4.000000:0:dog"]


def test_classification_with_k_beyond_the_classes(server):
    answer = classify(
        server, "vision",
        {"inputs": [tensor("PIX", "FP32", [1, 4], [1, 2, 3, 4])]},
        name="SCORES", classification=100)
    assert answer.json()["outputs"][0]["shape"] == [1, 4]


def test_classification_without_labels_and_of_integers(server):
    answer = classify(
        server, "vision_plain",
        {"inputs": [tensor("IN", "INT32", [4], [-5, 7, 0, 3])]},
        name="OUT", classification=3)
    assert answer.json()["outputs"] == [
        {"name": "OUT", "datatype": "BYTES", "shape": [3],
         "data": ["7:1", "3:3", "0:2"]}]


def test_classification_as_binary(server):
    answer = classify(
        server, "vision",
        {"inputs": [tensor("PIX", "FP32", [1, 4], [0, 9, 1, 2])]},
        name="SCORES", classification=1, binary_data=True)
    assert unpack_bytes(answer.split()[1]) == [b"9.000000:1:cat"]


def test_classification_zero_is_off(server):
    answer = classify(
        server, "vision",
        {"inputs": [tensor("PIX", "FP32", [1, 4], [0, 9, 1, 2])]},
        name="SCORES", classification=0)
    assert answer.json()["outputs"][0]["datatype"] == "FP32"


@pytest.mark.parametrize("datatype", ["BOOL", "BYTES", "FP16", "BF16"])
def test_classification_of_an_unfit_datatype(server, datatype):
    data = sample(datatype, 3)
    answer = server.infer(
        f"id_{datatype.lower()}",
        {"inputs": [tensor("IN", datatype, [3],
                           binary_data_size=len(data))],
         "outputs": [{"name": "OUT", "parameters": {"classification": 1}}]},
        data)
    assert answer.status == 400, answer
    assert "class result not available for output due to unsupported type" \
        in answer.error


def test_classification_of_too_many_elements(server):
    count = 1_000_001
    answer = server.infer(
        "id_uint8",
        {"inputs": [tensor("IN", "UINT8", [count],
                           binary_data_size=count)],
         "outputs": [{"name": "OUT", "parameters": {"classification": 3}}]},
        bytes(count))
    assert answer.status == 400, answer


# ---- the connection

def test_keep_alive_for_many_requests(server):
    with server.wire() as connection:
        for i in range(300):
            answer = connection.infer("id_int32", {"inputs": [
                tensor("IN", "INT32", [1], [i])]})
            assert answer.json()["outputs"][0]["data"] == [i]


def test_models_of_different_sizes_on_one_connection(server):
    with server.wire() as connection:
        for size in (1, 100000, 10, 3000000, 1, 65536):
            answer = connection.infer(
                "id_uint8",
                {"inputs": [tensor("IN", "UINT8", [size],
                                   binary_data_size=size)],
                 "parameters": {"binary_data_output": True}},
                bytes(size))
            assert answer.split()[1] == bytes(size)


def test_hundred_connections_at_once(server):
    connections = [Wire(server.port) for _ in range(100)]
    try:
        for i, c in enumerate(connections):
            body = json.dumps({"inputs": [
                tensor("IN", "INT32", [1], [i])]}).encode()
            c.send(b"POST /v2/models/id_int32/infer HTTP/1.1\r\nHost: x\r\n"
                   b"Content-Length: %d\r\n\r\n" % len(body) + body)
        for i, c in enumerate(connections):
            assert c.read().json()["outputs"][0]["data"] == [i]
    finally:
        for c in connections:
            c.close()
