"""ModelInfer: data, options and what they answer."""

import os
import struct

import ml_dtypes
import numpy
import pytest
from tritonclient.grpc import service_pb2 as pb

from lib import backends, models
from lib.grpc_client import Client, infer, output, strings, tensor

VALUES = {"BOOL": numpy.array([True, False, True]),
          "FP16": numpy.array([1.5, -2, 65504], numpy.float16),
          "BF16": numpy.array([1.5, -2, 3e38], ml_dtypes.bfloat16),
          "FP32": numpy.array([1.5, -2, 3e38], numpy.float32),
          "FP64": numpy.array([1.5, -2, 1e300], numpy.float64)}
for _name in ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32",
              "UINT64"):
    _type = numpy.dtype(_name.lower())
    _limits = numpy.iinfo(_type)
    VALUES[_name] = numpy.array([_limits.min, 1, _limits.max], _type)

CONTENTS = {"BOOL": "bool_contents", "INT8": "int_contents",
            "INT16": "int_contents", "INT32": "int_contents",
            "INT64": "int64_contents", "UINT8": "uint_contents",
            "UINT16": "uint_contents", "UINT32": "uint_contents",
            "UINT64": "uint64_contents", "FP32": "fp32_contents",
            "FP64": "fp64_contents"}


def raw_of(answer, **wanted):
    assert len(answer.outputs) == len(answer.raw_output_contents)
    for tensor_ in answer.outputs:
        assert not tensor_.HasField("contents")
    for field, value in wanted.items():
        assert getattr(answer, field) == value
    return list(answer.raw_output_contents)


@pytest.mark.parametrize("datatype", VALUES)
def test_raw_contents(client, datatype):
    data = VALUES[datatype].tobytes()
    answer = client.infer(f"id_{datatype.lower()}",
                          tensor("IN", datatype, [3], data))
    assert raw_of(answer, model_version="1",
                  model_name=f"id_{datatype.lower()}", id="") == [data]
    out = answer.outputs[0]
    assert (out.name, out.datatype, list(out.shape)) == ("OUT", datatype, [3])


@pytest.mark.parametrize("datatype", CONTENTS)
def test_contents(client, datatype):
    values = VALUES[datatype]
    answer = client.infer(f"id_{datatype.lower()}", tensor(
        "IN", datatype, [3], {CONTENTS[datatype]: values.tolist()}))
    assert raw_of(answer) == [values.tobytes()]


def test_contents_of_strings(client):
    texts = [b"a", b"", b"\xff\0binary", b"x" * 300]
    answer = client.infer("id_bytes", tensor("IN", "BYTES", [4], {
        "bytes_contents": texts}))
    assert raw_of(answer) == [strings(*texts)]


def test_raw_strings(client):
    data = strings(b"", b"abc", os.urandom(70_000))
    answer = client.infer("id_bytes", tensor("IN", "BYTES", [3], data))
    assert raw_of(answer) == [data]


def test_narrow_integers_keep_their_low_bytes(client):
    for datatype, field, sent, kept in [
            ("INT8", "int_contents", 0x1ff, b"\xff"),
            ("UINT8", "uint_contents", 0x102, b"\2"),
            ("INT16", "int_contents", -0x10002, b"\xfe\xff")]:
        answer = client.infer(f"id_{datatype.lower()}", tensor(
            "IN", datatype, [1], {field: [sent]}))
        assert raw_of(answer) == [kept]


def test_lists_that_are_not_packed(client):
    """As proto2 writes them: an element a field."""
    contents = b"".join(b"\x10" + bytes([n]) for n in (1, 2, 3))
    message = b"\n\2IN\x12\5INT32\x1a\1\3" \
        + b"\x2a" + bytes([len(contents)]) + contents
    request = b"\n\x08id_int32\x2a" + bytes([len(message)]) + message
    answer = client.unary("/inference.GRPCInferenceService/ModelInfer",
                          request, pb.ModelInferResponse)
    assert raw_of(answer) == [struct.pack("<3i", 1, 2, 3)]


def test_several_inputs(client):
    ints, floats = struct.pack("<2i", 1, 2), struct.pack("<3f", 1, 2, 3)
    for inputs in ([("IN0", "INT32", [2], ints), ("IN1", "FP32", [3],
                                                  floats)],
                   [("IN1", "FP32", [3], floats), ("IN0", "INT32", [2],
                                                   ints)]):
        answer = client.infer("id_pair", *(tensor(*i) for i in inputs))
        found = dict(zip([o.name for o in answer.outputs], raw_of(answer)))
        assert found == {"OUT0": ints, "OUT1": floats}


def test_requested_outputs(client):
    inputs = [tensor("IN0", "INT32", [1], bytes(4)),
              tensor("IN1", "FP32", [1], struct.pack("<f", 5))]
    answer = client.infer("id_pair", *inputs, outputs=[output("OUT1")])
    assert [o.name for o in answer.outputs] == ["OUT1"]
    assert raw_of(answer) == [struct.pack("<f", 5)]


def test_empty_tensors(client):
    answer = client.infer("id_int32", tensor("IN", "INT32", [0], b""))
    assert raw_of(answer) == [b""]
    assert list(answer.outputs[0].shape) == [0]
    answer = client.infer("id_int32", tensor("IN", "INT32", [0],
                                             {"int_contents": []}))
    assert raw_of(answer) == [b""]
    answer = client.infer("id_pair", tensor("IN0", "INT32", [0], b""),
                          tensor("IN1", "FP32", [1], bytes(4)))
    assert raw_of(answer) == [b"", bytes(4)]


def test_batches(client):
    data = numpy.arange(32, dtype=numpy.float32)
    answer = client.infer("id_batch", tensor("IN", "FP32", [8, 4],
                                             data.tobytes()))
    assert raw_of(answer) == [data.tobytes()]
    assert list(answer.outputs[0].shape) == [8, 4]


def test_versions_and_ids(client):
    for version, used in [("", "3"), ("1", "1"), ("3", "3"), ("01", "1")]:
        answer = client.infer("id_versions", tensor("IN", "INT32", [1],
                                                    bytes(4)),
                              model_version=version, id="né 7")
        assert raw_of(answer, model_version=used, id="né 7") == [bytes(4)]


def test_surplus_raw_contents_are_ignored(client):
    request = infer("id_int32", tensor("IN", "INT32", [1], b"abcd"))
    request.raw_input_contents.extend([b"more", b""])
    assert raw_of(client.call("ModelInfer", request)) == [b"abcd"]


def test_classification(client):
    scores = struct.pack("<8f", .1, .5, .2, .3, .9, .1, .2, .3)
    answer = client.infer("vision", tensor("PIX", "FP32", [2, 4], scores),
                          outputs=[output("SCORES", classification=2)])
    out = answer.outputs[0]
    assert (out.datatype, list(out.shape)) == ("BYTES", [2, 2])
    assert raw_of(answer) == [strings(
        b"0.500000:1:cat", b"0.300000:3:owl",
        b"0.900000:0:dog", b"0.300000:3:owl")]
    one = client.infer("vision", tensor("PIX", "FP32", [1, 4], scores[:16]),
                       outputs=[output("SCORES", classification=100)])
    assert list(one.outputs[0].shape) == [1, 4]


def test_large_tensors(client):
    data = os.urandom(20 << 20)
    answer = client.infer("id_uint8", tensor("IN", "UINT8", [len(data)],
                                             data))
    assert raw_of(answer) == [data]


def test_large_contents(client):
    values = numpy.arange(400_000, dtype=numpy.int64) << 30
    answer = client.infer("id_int64", tensor("IN", "INT64", [len(values)], {
        "int64_contents": values.tolist()}))
    assert raw_of(answer) == [values.tobytes()]


def test_many_sizes(client):
    """Around the sizes of frames, buffers and pages."""
    data = os.urandom(1 << 17)
    for size in [1, 2, 63, 64, 65, 4095, 4096, 16370, *range(16379, 16386),
                 32768, 65530, 65535, 65536, 65541, 131072]:
        answer = client.infer("id_uint8", tensor("IN", "UINT8", [size],
                                                 data[:size]))
        assert raw_of(answer) == [data[:size]]


@pytest.mark.parametrize("size", [1, 63, 64, 65, 4096, 70_001])
def test_contents_lie_alone_and_aligned(start, size):
    """Wherever an entry is in the message, the backend's buffer is one piece
    at a multiple of 64."""
    def placed(repository):
        models.write_model(
            repository, "m", 'backend: "memory_kinds"\n'
            + models.io_block("input", [(n, "UINT8", [-1])
                                        for n in ("BEFORE", "IN")])
            + models.io_block("output", [("DATA", "UINT8", [-1]),
                                         ("REPORT", "BYTES", [1])])
            + "instance_group { kind: KIND_CPU }\n")

    server = start(placed, backends=backends.build("memory_kinds"))
    data = os.urandom(size)
    with Client(server.port2) as client:
        for before in (1, 2, 61, 62, 63, 64, 65, 16_300):
            answer = client.infer(
                "m", *(tensor(n, "UINT8", [len(d)], d) for n, d in (
                    ("BEFORE", bytes(before)), ("IN", data))),
                outputs=[output("DATA"), output("REPORT")])
            data_, report = raw_of(answer)
            assert data_ == data
            assert f" in CPU:0:{size};".encode() in report, (before, report)


def test_raw_contents_before_the_inputs(client):
    """Fields of a message may come in any order."""
    request = infer("id_pair", tensor("IN0", "INT32", [1], b"abcd"),
                    tensor("IN1", "FP32", [2], b"efghijkl"))
    fields = [pb.ModelInferRequest(raw_input_contents=
                                   request.raw_input_contents),
              pb.ModelInferRequest(inputs=request.inputs),
              pb.ModelInferRequest(model_name="id_pair", id="9")]
    answer = client.unary("/inference.GRPCInferenceService/ModelInfer",
                          b"".join(f.SerializeToString() for f in fields),
                          pb.ModelInferResponse)
    assert raw_of(answer, id="9") == [b"abcd", b"efghijkl"]


def test_all_datatypes_are_here():
    assert set(VALUES) | {"BYTES"} == set(models.ALL_DATATYPES)
