"""Error texts that clients match: Triton's words come first, byte for byte;
ours may say more behind them."""

import json

import pytest

from lib import models
from lib.server import Server

LENGTH = "Inference-Header-Content-Length"
NO_ID = "[request id: <id_unknown>] "
ACCESS = "attempt to access JSON "
UNSIGNED = ACCESS + "non-unsigned-integer as unsigned-integer"
SIGNED = ACCESS + "non-signed-integer as signed-integer"
DATA = "Unable to parse 'data': "
ONE_SOURCE = "Input must set only one of the following fields: 'data', " \
    "'binary_data_size' in 'parameters', 'shared_memory_region' in " \
    "'parameters'. But "
PROVIDE = " Please provide all required input(s)."
CUSTOM = "parameter '{}' has invalid type. It should be either 'int', " \
    "'bool', or 'string'."
SHAPE = NO_ID + "unexpected shape for input 'IN' for model '{}'. Expected " \
    "{}, got {}. "
NOTE = "NOTE: Setting a non-zero max_batch_size in the model config requires" \
    " a batch dimension to be prepended to each input shape. If you want to" \
    " specify the full shape including the batch dim in your input dims" \
    " config, try setting max_batch_size to zero. See the model" \
    " configuration docs for more info on max_batch_size."


def one(**changes):
    return {"name": "IN", "datatype": "INT32", "shape": [1], "data": [1],
            **changes}


def of(*inputs, **more):
    return dict({"inputs": list(inputs)}, **more)


def asked(**parameters):
    return of(one(), outputs=[{"name": "OUT", "parameters": parameters}])


def bare(**parameters):
    return of({"name": "IN", "datatype": "INT32", "shape": [1],
               "parameters": parameters})


def typed(datatype, *values):
    return of(one(datatype=datatype, data=list(values)))


# (model, JSON or bytes, text)
TEXTS = [
    # the description
    ("id_int32", {}, "Unable to parse 'inputs': attempt to access "
     "non-existing object member 'inputs'"),
    ("id_int32", [], "Unable to parse 'inputs': attempt to access "
     "non-existing object member 'inputs'"),
    ("id_int32", {"inputs": 1}, f"Unable to parse 'inputs': {ACCESS}"
     "non-array as array"),
    ("id_int32", of(one(), id=1), f"Unable to parse 'id': {ACCESS}non-string"
     " as string"),
    ("id_int32", of(one(), parameters=1), "failed to get request params.: "
     "attempt to get members for non-object"),
    ("id_int32", of(one(), outputs=1), f"Unable to parse 'outputs': {ACCESS}"
     "non-array as array"),
    ("id_int32", of(one(), outputs=[{}]), "Unable to parse 'name': attempt to "
     "access non-existing object member 'name'"),
    ("id_int32", of({"datatype": "INT32", "shape": [1], "data": [1]}),
     "Unable to parse 'name': attempt to access non-existing object member "
     "'name'"),
    ("id_int32", of(one(shape=[-1])), f"Unable to parse 'shape': {UNSIGNED}"),
    ("id_int32", of(one(shape=1)), f"Unable to parse 'shape': {ACCESS}"
     "non-array as array"),
    ("id_int32", of(one(datatype="int32")), "invalid datatype for input IN"),

    # where the data is
    ("id_int32", bare(), ONE_SOURCE + "no field is set"),
    ("id_int32", of(one(parameters={"binary_data_size": 4})),
     ONE_SOURCE + "set 'data' 'binary_data_size'"),
    ("id_int32", bare(binary_data_size=4, shared_memory_region="r"),
     ONE_SOURCE + "set 'binary_data_size' 'shared_memory_region'"),
    ("id_int32", of(one(parameters={"binary_data_size": 4,
                                    "shared_memory_region": "r"})),
     ONE_SOURCE + "set 'data' 'binary_data_size' 'shared_memory_region'"),
    ("id_int32", bare(binary_data_size="4"),
     f"Unable to parse 'binary_data_size': {UNSIGNED}"),
    ("id_int32", bare(shared_memory_region=1), "Unable to parse "
     f"'shared_memory_region': {ACCESS}non-string as string"),
    ("id_int32", bare(shared_memory_region="r", shared_memory_byte_size=4),
     "Unable to find shared memory region: 'r'"),
    ("id_int32", bare(binary_data_size=4), "unexpected size for input 'IN', "
     "expecting 4 additional bytes for model 'id_int32'"),

    # data as JSON
    ("id_int32", of(one(data=1)), f"{DATA}{ACCESS}non-array as array"),
    ("id_int32", of(one(data=[1, 2])),
     f"{DATA}Shape does not match true shape of 'data' field"),
    ("id_int32", of(one(shape=[2])),
     "Failed to parse 'data' field: shape does not match true shape"),
    *(("id_int32", of(one(data=[v])), DATA + SIGNED)
      for v in ("a", True, None, 1.5, 2**63)),
    *(("id_uint64", typed("UINT64", v), DATA + UNSIGNED)
      for v in ("a", False, -1, 1.5, 2**64)),
    *(("id_fp32", typed("FP32", v), f"{DATA}{ACCESS}non-number as double")
      for v in ("a", True, {})),
    ("id_bool", typed("BOOL", 1), f"{DATA}{ACCESS}non-boolean as boolean"),
    ("id_bytes", typed("BYTES", 1),
     f"Unable to parse JSON bytes array: {ACCESS}non-string as string"),
    ("id_fp16", typed("FP16", 1), "receiving FP16 data via JSON is not "
     "supported. Please use the binary data format for input IN"),

    # against the model
    ("id_int32", of(one(name="X")),
     "unexpected inference input 'X' for model 'id_int32'"),
    ("id_int32", of(one(name="")),
     "unexpected inference input '' for model 'id_int32'"),
    ("id_int32", of(one(), outputs=[{"name": "X"}]),
     "unexpected inference output 'X' for model 'id_int32'"),
    ("id_int32", of(one(), outputs=[{"name": ""}]),
     "unexpected inference output '' for model 'id_int32'"),
    ("id_int32", of(one(), one()), "input 'IN' already exists in request"),
    ("id_int32", of(one(), one(name="X")), NO_ID + "expected 1 inputs but got "
     "2 inputs for model 'id_int32'. Got input(s) ['IN','X'], but missing "
     "required input(s) []." + PROVIDE + " The model has no input(s) ['X']."),
    ("id_pair", of(one(name="X")), NO_ID + "expected 2 inputs but got 1 "
     "inputs for model 'id_pair'. Got input(s) ['X'], but missing required "
     "input(s) ['IN0','IN1']." + PROVIDE + " The model has no input(s) "
     "['X']."),
    ("id_pair", of(one(name="IN0"), one(name="X")),
     "unexpected inference input 'X' for model 'id_pair'"),
    ("id_pair", of(one(name="IN0")), NO_ID + "expected 2 inputs but got 1 "
     "inputs for model 'id_pair'. Got input(s) ['IN0'], but missing required "
     "input(s) ['IN1']." + PROVIDE),
    ("optional", of(one(name="IN0")), NO_ID + "expected number of inputs "
     "between 3 and 4 but got 1 inputs for model 'optional'. Got input(s) "
     "['IN0'], but missing required input(s) ['IN1','IN2']." + PROVIDE),
    ("optional", of(one(name="IN2"), one(name="IN0")), NO_ID + "expected "
     "number of inputs between 3 and 4 but got 2 inputs for model 'optional'. "
     "Got input(s) ['IN0','IN2'], but missing required input(s) ['IN1']."
     + PROVIDE),
    ("id_int32", of(one(datatype="FP32")), NO_ID + "inference input 'IN' "
     "data-type is 'FP32', but model 'id_int32' expects 'INT32'"),
    ("id_fixed", of(one(shape=[6], data=[1] * 6)),
     SHAPE.format("id_fixed", "[2,3]", "[6]")),
    ("id_batch", of(one(datatype="FP32", shape=[1, 5], data=[1] * 5)),
     SHAPE.format("id_batch", "[-1,4]", "[1,5]") + NOTE),
    ("id_batch", of(one(datatype="FP32", shape=[9, 4], data=[1] * 36)),
     NO_ID + "inference request batch-size must be <= 8 for 'id_batch'"),
    ("id_batch", of(one(datatype="FP32", shape=[0, 4], data=[])),
     NO_ID + "inference request batch-size must be >= 1 for 'id_batch'"),

    # outputs
    ("id_int32", asked(binary_data=1),
     f"Unable to parse 'binary_data': {ACCESS}non-boolean as boolean"),
    ("id_int32", asked(classification=-1),
     f"Unable to set 'classification': {UNSIGNED}"),
    *(("id_int32", asked(shared_memory_region="r", shared_memory_byte_size=4,
                         **{other: True if other == "binary_data" else 1}),
       f"Output can't set both 'shared_memory_region' and '{other}'")
      for other in ("binary_data", "classification")),
    ("id_bool", of(one(datatype="BOOL", data=[True]), outputs=[{
        "name": "OUT", "parameters": {"classification": 1}}]),
     "class result not available for output due to unsupported type 'BOOL'"),

    # parameters
    *(("id_int32", of(one(), parameters={"sequence_id": v}),
       f"Unable to parse 'sequence_id': {ACCESS}non-string as string")
      for v in (-1, 1.5, True)),
    ("id_int32", of(one(), parameters={"sequence_start": 1}),
     f"Unable to parse 'sequence_start': {ACCESS}non-boolean as boolean"),
    ("id_int32", of(one(), parameters={"priority": -1}),
     f"Unable to parse 'priority': {UNSIGNED}"),
    ("id_int32", of(one(), parameters={"timeout": "x"}),
     f"Unable to parse 'timeout': {UNSIGNED}"),
    ("id_int32", of(one(), parameters={"triton_x": 1}), "parameter keys "
     "starting with 'triton_' are reserved for Triton usage and should not be "
     "specified."),
    *(("id_int32", of(one(), parameters={"c": v}), CUSTOM.format("c"))
      for v in ([1], {}, None)),

    # sequences
    ("asr", of(one(datatype="FP32")), "inference request to model 'asr' must "
     "specify a non-zero or non-empty correlation ID"),
    ("asr", of(one(datatype="FP32"), parameters={"sequence_id": 7}),
     "inference request for sequence 7 to model 'asr' must specify the START "
     "flag on the first request of the sequence"),
]

# (model, header, tail or whole body, headers, text)
WIRE_TEXTS = [
    ("id_int32", bare(binary_data_size=4), bytes(5), {}, "unexpected "
     "additional input data for model 'id_int32'"),
    ("id_int32", bare(binary_data_size=4), b"", {LENGTH: "9999"},
     "inference header size should be in range (0, "),
    ("id_int32", b"", b"", {"Content-Encoding": "gzip"},
     "nothing to be decompressed"),
    ("id_pair", b"", b"1234", {LENGTH: "0"}, NO_ID + "Raw request must only "
     "have 1 input (found 1) to be deduced but got 2 inputs in 'id_pair' model"
     " configuration"),
    ("id_any", b"", b"1234", {LENGTH: "0"}, NO_ID + "The shape of the raw "
     "input 'IN' can not be deduced because there are more than one "
     "variable-sized dimension"),
    ("id_bytes", b"", b"1234", {LENGTH: "0"}, NO_ID + "For BYTE datatype raw "
     "input 'IN', the model must have input shape [1]"),
    *(("id_bytes", of({"name": "IN", "datatype": "BYTES", "shape": [count],
                       "parameters": {"binary_data_size": len(data)}}), data,
       {}, NO_ID + text) for count, data, text in (
           (3, b"\1\0\0\0a", "expected 3 string elements for inference input "
            "'IN' for model 'id_bytes', got 1"),
           (1, b"\1\0\0\0a" * 2, "unexpected number of string elements 2 for "
            "inference input 'IN' for model 'id_bytes', expecting 1"),
           (1, b"\1\0\0", "incomplete string length indicator for inference "
            "input 'IN' for model 'id_bytes', expecting 4 bytes but only 3 "
            "bytes available. Please make sure the string length indicator is"
            " in one buffer."))),
]


def fill(repository):
    models.standard_repository(repository)
    models.identity(repository, "optional", [
        *((f"IN{i}", "INT32", [-1]) for i in range(3)),
        ("IN3", "INT32", [-1], "optional: true")])
    models.identity(repository, "asr", [("IN", "FP32", [-1])],
                    extra="sequence_batching { }\n")


@pytest.fixture(scope="module")
def texts():
    with Server(fill, parts="health metadata config infer generate repository"
                            " shared_memory") as s:
        yield s


@pytest.mark.parametrize("model,body,text", TEXTS)
def test_inferences(texts, model, body, text):
    answer = texts.infer(model, json.dumps(body).encode())
    assert answer.status in (400, 404), answer
    assert answer.error.startswith(text), answer.error


@pytest.mark.parametrize("model,header,tail,headers,text", WIRE_TEXTS)
def test_lengths_and_binary_data(texts, model, header, tail, headers, text):
    answer = texts.infer(model, header, tail, headers)
    assert answer.status == 400, answer
    assert answer.error.startswith(text), answer.error


def test_a_long_sequence_id(texts):
    answer = texts.infer("id_int32", of(one(), parameters={
        "sequence_id": "x" * 129}))
    assert (answer.status, answer.error) == (
        501, "string correlation ID cannot be longer than 128 characters")


@pytest.mark.parametrize("verb", ["generate", "generate_stream"])
@pytest.mark.parametrize("body,text", [
    ({"IN": "x"}, DATA + SIGNED), ({"IN": 1.5}, DATA + SIGNED),
    ({"IN": 1, "c": [1]}, CUSTOM.format("c"))])
def test_generate(texts, verb, body, text):
    answer = texts.post(f"/v2/models/id_int32/{verb}",
                        json.dumps(body).encode())
    assert answer.status == 400, answer
    assert answer.error.startswith(text), answer.error


@pytest.mark.parametrize("path,body,text", [
    ("repository/index", {"ready": 1}, ACCESS + "non-boolean as boolean"),
    ("repository/models/m/load", {"parameters": None},
     "attempt to get members for non-object"),
    ("repository/models/m/load", {"parameters": {"config": 1}},
     ACCESS + "non-string as string"),
    ("systemsharedmemory/region/r/register", {"key": 1, "byte_size": 8},
     ACCESS + "non-string as string"),
    ("systemsharedmemory/region/r/register", {"key": "/k", "byte_size": "8"},
     UNSIGNED),
    ("cudasharedmemory/region/r/register", {"raw_handle": {}},
     "attempt to access non-existing object member 'b64'"),
    ("cudasharedmemory/region/r/register", {"raw_handle": {"b64": "?"}},
     "'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t")])
def test_calls(texts, path, body, text):
    answer = texts.post(f"/v2/{path}", json.dumps(body).encode())
    assert answer.status == 400, answer
    assert answer.error.startswith(text), answer.error


@pytest.mark.parametrize("kind", ["system", "cuda"])
def test_a_region_without_a_name(texts, kind):
    answer = texts.post(f"/v2/{kind}sharedmemory/register", b"{}")
    assert (answer.status, answer.error) == (
        400, f"'region name' is necessary to register {kind} shared memory"
             " region")
