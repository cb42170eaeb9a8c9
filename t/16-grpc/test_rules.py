"""ModelInfer rejects requests, with which status and which words."""

import struct

import grpc
import pytest
from tritonclient.grpc import service_pb2 as pb

from lib.grpc_client import Failure, infer, numbers, output, tensor

Code = grpc.StatusCode
Parameter = pb.InferParameter
ONE = tensor("IN", "INT32", [1], bytes(4))

UNSIGNED = Parameter(uint64_param=1)
UNSET = Parameter()
EXPECTED = "invalid value type for '{}' parameter, expected {}."
RESERVED = "parameter keys starting with 'triton_' are reserved for Triton " \
    "usage. Only the following keys starting with 'triton_' are allowed: " \
    "triton_enable_empty_final_response"
CUSTOM = "int64_param, bool_param, or string_param"

TAKEN = {
    "sequence_id": [5, -1, "name", "x" * 128],
    "sequence_start": [True, False], "sequence_end": [True, False],
    "priority": [0, UNSIGNED], "timeout": [0, 60_000_000],
    "triton_enable_empty_final_response": [True, False],
    "custom": [1, True, "text", 1.5]}

REJECTED = [
    ("sequence_id", UNSIGNED, None), ("sequence_id", True, None),
    ("sequence_id", UNSET, None),
    ("sequence_start", 1, "bool_param"),
    ("sequence_start", "true", "bool_param"),
    ("sequence_end", UNSET, "bool_param"),
    ("priority", "1", None), ("priority", 1.5, None),
    ("timeout", "1", "int64_param"), ("timeout", UNSIGNED, "int64_param"),
    ("triton_enable_empty_final_response", 1, "bool_param"),
    ("custom", UNSIGNED, CUSTOM), ("custom", UNSET, CUSTOM)]


def fails(client, request, code=Code.INVALID_ARGUMENT):
    with pytest.raises(Failure) as e:
        client.call("ModelInfer", request)
    assert e.value.code == code, e.value
    return e.value.text


@pytest.mark.parametrize("key", TAKEN)
def test_parameters_that_are_taken(client, key):
    for value in TAKEN[key]:
        answer = client.infer("id_int32", ONE, options={key: value})
        assert list(answer.raw_output_contents) == [bytes(4)]


@pytest.mark.parametrize("key,value,expected", REJECTED)
def test_parameters_that_are_not(client, key, value, expected):
    text = fails(client, infer("id_int32", ONE, options={key: value}))
    if expected:
        assert EXPECTED.format(key, expected) in text
    else:
        assert f"'{key}' parameter" in text


def test_other_parameters_of_triton(client):
    text = fails(client, infer("id_int32", ONE, options={"triton_x": 1}))
    assert RESERVED in text


def test_a_negative_priority(client):
    text = fails(client, infer("id_int32", ONE, options={"priority": -1}))
    assert "'priority'" in text


def test_a_long_sequence_id(client):
    assert fails(client, infer("id_int32", ONE, options={
        "sequence_id": "x" * 129}), Code.UNIMPLEMENTED) \
        == "string correlation ID cannot be longer than 128 characters"


@pytest.mark.parametrize("version", ["x", "-1", "1.0", " 1", "9" * 30])
def test_versions_that_are_no_numbers(client, version):
    text = fails(client, infer("id_int32", ONE, model_version=version))
    assert text.startswith(
        "failed to get model version from specified version string "
        f"'{version}' (details: " if version != "-1" else
        "invalid model version specified '-1' , version should be an "
        "integral value > 0")


@pytest.mark.parametrize("version,text", [
    ("x", "failed to get model version from specified version string 'x' "
     "(details: not a number), version should be an integral value > 0"),
    ("-1", "invalid model version specified '-1' , version should be an "
     "integral value > 0")])
@pytest.mark.parametrize("method", ["ModelReady", "ModelMetadata",
                                    "ModelConfig", "ModelStatistics"])
def test_versions_of_other_calls(client, method, version, text):
    with pytest.raises(Failure) as e:
        client.call(method, getattr(pb, method + "Request")(
            name="id_int32", version=version))
    assert e.value.code == Code.INVALID_ARGUMENT
    assert e.value.text == text


def test_unknown_models_and_versions(client):
    assert "'absent'" in fails(client, infer("absent", ONE), Code.NOT_FOUND)
    fails(client, infer("", ONE), Code.NOT_FOUND)
    fails(client, infer("id_int32", ONE, model_version="9"), Code.NOT_FOUND)


def test_the_version_is_read_before_the_model_is_looked_up(client):
    assert "'x'" in fails(client, infer("absent", ONE, model_version="x"))


def test_no_data(client):
    text = fails(client, infer("id_int32", tensor("IN", "INT32", [1])))
    assert "unable to find data for input tensor 'IN' for model 'id_int32' " \
        "in request." in text
    text = fails(client, infer(
        "id_pair", tensor("IN0", "INT32", [1], bytes(4)),
        tensor("IN1", "FP32", [1])))
    assert "unable to find data for input tensor 'IN1' for model 'id_pair' " \
        "in request." in text


@pytest.mark.parametrize("tensor_,text", [
    (tensor("NONE", "INT32", [1], bytes(4)),
     "unexpected inference input 'NONE' for model 'id_int32'"),
    (tensor("", "INT32", [1], bytes(4)),
     "unexpected inference input '' for model 'id_int32'"),
    (tensor("IN", "INT32", [-1], bytes(4)),
     "[request id: <id_unknown>] All input dimensions should be specified for "
     "input 'IN' for model 'id_int32', got [-1]")])
def test_inputs_that_do_not_fit(client, tensor_, text):
    assert fails(client, infer("id_int32", tensor_)) == text


def test_both_kinds_of_contents(client):
    text = fails(client, infer(
        "id_pair", tensor("IN0", "INT32", [1], {"int_contents": [1]}),
        tensor("IN1", "FP32", [1], bytes(4))))
    assert "contents field must not be specified when using " \
        "raw_input_contents for 'IN0' for model 'id_pair'" in text


def test_contents_of_another_type(client):
    text = fails(client, infer("id_int32", tensor("IN", "INT32", [1], {
        "int64_contents": [1]})))
    assert "unexpected explicit tensor data for input tensor 'IN' for model " \
        "'id_int32' of type 'INT64', expected datatype 'INT32'" in text
    for datatype in ("FP16", "BF16"):
        fails(client, infer(f"id_{datatype.lower()}", tensor(
            "IN", datatype, [1], {"fp32_contents": [1]})))


def test_two_lists(client):
    text = fails(client, infer("id_int32", tensor("IN", "INT32", [1], {
        "int_contents": [1], "int64_contents": [1]})))
    assert "unexpected explicit tensor data for input tensor 'IN' for model " \
        "'id_int32'" in text


@pytest.mark.parametrize("shape,data", [
    ([2], bytes(4)), ([1], bytes(8)), ([1], b""), ([1], bytes(3)),
    ([-1], bytes(4)), ([1 << 62, 4], bytes(4))])
def test_sizes_that_do_not_fit(client, shape, data):
    fails(client, infer("id_int32", tensor("IN", "INT32", shape, data)))


def test_sizes_of_lists_that_do_not_fit(client):
    fails(client, infer("id_int32", tensor("IN", "INT32", [2], {
        "int_contents": [1]})))
    fails(client, infer("id_bytes", tensor("IN", "BYTES", [2], {
        "bytes_contents": [b"a"]})))


@pytest.mark.parametrize("data", [
    b"\1", b"\5\0\0\0abc", b"\xff\xff\xff\xff", b"\1\0\0\0a\0\0\0\0"])
def test_strings_that_lie(client, data):
    fails(client, infer("id_bytes", tensor("IN", "BYTES", [1], data)))


def test_names_and_types(client):
    assert "'NONE'" in fails(client, infer("id_int32", tensor(
        "NONE", "INT32", [1], bytes(4))))
    fails(client, infer("id_int32", tensor("IN", "FP32", [1], bytes(4))))
    fails(client, infer("id_int32", tensor("IN", "NONE", [1], bytes(4))))
    fails(client, infer("id_int32", ONE, ONE))
    fails(client, infer("id_int32"))
    fails(client, infer("id_pair", tensor("IN0", "INT32", [1], bytes(4))))
    fails(client, infer("id_int32", ONE, outputs=[output("NONE")]))
    fails(client, infer("id_fixed", tensor("IN", "INT32", [3, 2],
                                           bytes(24))))
    fails(client, infer("id_batch", tensor("IN", "FP32", [9, 4],
                                           bytes(144))))


@pytest.mark.parametrize("value", [0, -1, "2", UNSIGNED])
def test_classification_that_is_no_number(client, value):
    text = fails(client, infer(
        "vision", tensor("PIX", "FP32", [1, 4], bytes(16)),
        outputs=[output("SCORES", classification=value)]))
    assert "'classification' parameter" in text
    if value == 0:
        assert "invalid value for 'classification' parameter, expected >= 0" \
            in text


def test_regions(client):
    """Shared memory is not there; what is said of it is checked first."""
    for options, words in [
            ({"shared_memory_region": "r"},
             "'shared_memory_byte_size' must be specified along with "
             "'shared_memory_region' parameter for tensor 'IN'"),
            ({"shared_memory_byte_size": 4}, "'shared_memory_region'"),
            ({"shared_memory_offset": 0}, "'shared_memory_region'"),
            ({"shared_memory_region": 1}, "expected string_param")]:
        assert words in fails(client, infer("id_int32", tensor(
            "IN", "INT32", [1], None, options)))
    region = {"shared_memory_region": "r", "shared_memory_byte_size": 4}
    text = fails(client, infer("id_int32", tensor(
        "IN", "INT32", [1], {"int_contents": [1]}, region)))
    assert "unexpected 'content' provided when using shared memory for " \
        "input tensor 'IN' for model 'id_int32'" in text
    text = fails(client, infer("vision", tensor(
        "PIX", "FP32", [1, 4], bytes(16)), outputs=[output(
            "SCORES", classification=1, **region)]))
    assert "output can't set both 'shared_memory_region' and " \
        "'classification'" in text


def test_a_region_nobody_has(client):
    with pytest.raises(Failure) as e:
        client.infer("id_int32", tensor(
            "IN", "INT32", [1], None,
            {"shared_memory_region": "r", "shared_memory_byte_size": 4}))
    assert e.value.code in (Code.NOT_FOUND, Code.INVALID_ARGUMENT,
                            Code.UNIMPLEMENTED)


def test_decoupled_models_have_streams_only(client):
    for request in (infer("square", ONE), infer("square")):
        text = fails(client, request, Code.UNIMPLEMENTED)
        assert "ModelInfer RPC doesn't support models with decoupled " \
            "transaction policy" in text


@pytest.mark.parametrize("request_", [
    b"\n\2\xff\xfe", b"\n\x08id_int32\x1a\1\x80"])
def test_text_that_is_no_utf8(client, request_):
    with pytest.raises(Failure) as e:
        client.unary("/inference.GRPCInferenceService/ModelInfer", request_,
                     None)
    assert e.value.code == Code.INTERNAL
    assert e.value.text.startswith("Unable to parse request")


def test_messages_cut_anywhere(client):
    """Every prefix of a message is one, or an error; nothing else."""
    whole = numbers("id_int32", [1, 2], id="i",
                    options={"custom": "x"}).SerializeToString()
    codes = {Code.INTERNAL, Code.INVALID_ARGUMENT, Code.NOT_FOUND}
    for size in range(len(whole)):
        with pytest.raises(Failure) as e:
            client.unary("/inference.GRPCInferenceService/ModelInfer",
                         whole[:size], None)
        assert e.value.code in codes, (size, e.value)
    assert client.numbers("id_int32", [3]) == [3]


def test_bytes_changed_anywhere(client):
    """One byte that is another: an answer or an error of the request's."""
    whole = numbers("id_int32", [1, 2], options={"custom": 1}) \
        .SerializeToString()
    codes = {Code.INTERNAL, Code.INVALID_ARGUMENT, Code.NOT_FOUND,
             Code.UNIMPLEMENTED}
    for at in range(len(whole)):
        for other in (0, whole[at] ^ 1, whole[at] ^ 0x80, 0xff):
            data = whole[:at] + bytes([other]) + whole[at + 1:]
            try:
                client.unary("/inference.GRPCInferenceService/ModelInfer",
                             data, pb.ModelInferResponse)
            except Failure as e:
                assert e.code in codes, (at, other, e)
    assert struct.pack("<i", client.numbers("id_int32", [3])[0])


def test_words_of_any_language_and_length(client):
    """A status's text is percent-encoded, and cut where it gets long."""
    name = "modèle 100% ☃\n"
    assert name in fails(client, infer(name, ONE), Code.NOT_FOUND)
    text = fails(client, infer("é" * 5000, ONE), Code.NOT_FOUND)
    assert "é" * 50 in text
    assert len(text.encode()) <= 2048
