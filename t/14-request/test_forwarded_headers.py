"""Headers that the model of an inference gets as parameters."""

import json
import socket

import numpy
import pytest
import tritonclient.http
from tritonclient.grpc import service_pb2 as pb

from lib import models
from lib.curl import curl, curl_http2
from lib.grpc_client import (SERVICE, Client, Failure, frame, frames, infer,
                             status_in, tensor)
from lib.h2 import H2
from lib.server import Server
from lib.wire import tensor as json_tensor

FORWARD = """
        underscores_in_headers on;
        inference_forward_header ^x-;
        inference_forward_header who$;
        location /none/ { inference infer; inference_forward_header ""; }
        location /own/ { inference infer; inference_forward_header ^own; }
        location /every/ { inference infer; inference_forward_header .; }
        location = /echo { inference_model echo; }
"""
HEADER = {"inputs": [json_tensor("IN", "INT32", [1], [1])]}
ONE = tensor("IN", "INT32", [1], bytes(4))
RESERVED = "Header '{}' is reserved for Triton usage and cannot be " \
    "forwarded."


@pytest.fixture(scope="module")
def server():
    def fill(repository):
        models.identity(repository, "echo", [("IN", "INT32", [-1])],
                        parameters={"echo_parameters": "true"})

    with Server(fill, server=FORWARD, http2=True,
                http="    large_client_header_buffers 8 64k;") as s:
        yield s


def told(answer):
    assert answer.status == 200, answer
    return answer.json().get("parameters", {})


def ask(server, headers, prefix="", **parameters):
    with server.wire() as w:
        return w.post(prefix + "/v2/models/echo/infer", json_body(parameters),
                      headers)


def json_body(parameters=None):
    return json.dumps(HEADER | {"parameters": parameters or {}}).encode()


def test_names_match_in_any_case_and_keep_their_spelling(server):
    assert told(ask(server, {"X-Tenant": "a b", "x-empty": "", "My-Who": "1",
                             "Other": "no", "Ax-b": "no"})) \
        == {"X-Tenant": "a b", "x-empty": "", "My-Who": "1"}


def test_they_stand_beside_the_request_s_own(server):
    assert told(ask(server, {"x-a": "1"}, own="o", n=3)) \
        == {"own": "o", "n": 3, "x-a": "1"}


def test_levels_inherit_or_replace(server):
    headers = {"x-a": "1", "own-b": "2"}
    assert told(ask(server, headers)) == {"x-a": "1"}
    assert told(ask(server, headers, "/none")) == {}
    assert told(ask(server, headers, "/own")) == {"own-b": "2"}


def test_all_headers(server):
    found = told(ask(server, {"A": "1", "b_c": "2"}, "/every"))
    assert found["A"] == "1" and found["b_c"] == "2"
    assert found["Host"] == "localhost" and "Content-Length" in found


@pytest.mark.parametrize("name", [
    "sequence_id", "sequence_start", "sequence_end", "priority", "timeout",
    "headers", "binary_data_output", "triton_x", "triton_"])
def test_reserved_names(server, name):
    answer = ask(server, {name: "1"}, "/every")
    assert (answer.status, answer.error) == (400, RESERVED.format(name))
    assert ask(server, {name: "1"}).status == 200, "it does not match"


@pytest.mark.parametrize("headers", [
    {f"x-{i}": "" for i in range(129)},
    {f"x-{i}": "v" * 16384 for i in range(4)}], ids=["many", "long"])
def test_bounds(server, headers):
    answer = ask(server, headers)
    assert answer.status == 400
    assert "headers to forward are more than 128 or longer than 65536 " \
        "bytes" in answer.error
    headers.popitem()
    assert told(ask(server, headers)) == headers


def test_a_location_of_one_model_and_http2(server):
    for program, port in [(curl, server.port), (curl_http2, server.port2)]:
        status, body = program(
            "-H", "x-a: 1", "--data-binary", "@-",
            f"http://127.0.0.1:{port}/echo", data=json_body())
        assert status == 200 and b'"parameters":{"x-a":"1"}' in body


def test_tritonclient_sends_headers(server):
    with tritonclient.http.InferenceServerClient(server.url) as client:
        value = tritonclient.http.InferInput("IN", [1], "INT32")
        value.set_data_from_numpy(numpy.zeros(1, numpy.int32))
        answer = client.infer("echo", [value], headers={"X-Key": "v"})
        assert answer.get_response()["parameters"] == {"X-Key": "v"}


def parameters(answer):
    return {k: v.string_param for k, v in answer.parameters.items()
            if k != "triton_final_response"}


def test_metadata_of_grpc(server):
    with Client(server.port2) as client:
        answer = client.infer("echo", ONE,
                              metadata=[("x-a", "1"), ("other", "2"),
                                        ("my-who", "")])
        assert parameters(answer) == {"x-a": "1", "my-who": ""}


@pytest.mark.parametrize("value", [
    b"", b"a", b"ab", b"abc", "ü~\x7f".encode(), bytes(range(1, 128))])
def test_binary_metadata_is_what_was_sent(server, value):
    with Client(server.port2) as client:
        answer = client.infer("echo", ONE, metadata=[("x-a-bin", value)])
        assert parameters(answer) == {"x-a-bin": value.decode()}


def test_binary_metadata_that_is_no_string(server):
    with Client(server.port2) as client:
        with pytest.raises(Failure) as e:
            client.infer("echo", ONE, metadata=[("x-a-bin", b"a\0b")])
        assert e.value.code.name == "INVALID_ARGUMENT"
        assert e.value.text \
            == "Header 'x-a-bin' holds a NUL and cannot be forwarded."
        answer = client.infer("echo", ONE, metadata=[("y-bin", b"\0")])
        assert parameters(answer) == {}, "it does not match"


def binary(server, *values):
    """The status of a call with these lines of x-a-bin, and the values that
    the model has of it."""
    with H2(server.port2) as c:
        reply = c.read(c.post(
            SERVICE + "ModelInfer",
            [("content-type", "application/grpc"), ("te", "trailers")]
            + [("x-a-bin", v) for v in values], frame(infer("echo", ONE))))
    if status_in(reply.block):
        return status_in(reply.block), None
    answer = pb.ModelInferResponse.FromString(frames(reply.body)[0][1])
    return 0, parameters(answer).get("x-a-bin")


@pytest.mark.parametrize("value,told", [
    ("YWI=", "ab"), ("YWI", "ab"), ("", ""), ("YQ==", "a"), ("YWJj", "abc"),
    ("w7w", "ü"), ("8J+YgA", "😀")])
def test_base64_is_padded_or_not(server, value, told):
    assert binary(server, value) == (0, told)


@pytest.mark.parametrize("value", [
    "a", "a*b=", "YWI=garbage", "YWI=YWI=", "YWI==", "YQ=", "YQ===", "YQ====",
    "=", "====", "YWJj=", "YWJj====", "YQ,a", "YQ,=", "YWI=x,YQ", "YW I"])
def test_base64_that_is_none(server, value):
    assert binary(server, value) == (3, None)


@pytest.mark.parametrize("value", [
    "/w", "gA", "wIA", "7aCA", "9JCAgA", "4oI", "YQ,/w", "AA", "YQ,AA"])
def test_binary_metadata_of_bytes_that_are_no_text(server, value):
    """Parts of characters, surrogates, overlong forms, NUL: no string."""
    assert binary(server, value) == (3, None)


@pytest.mark.parametrize("values,last", [
    (["YQ,YWI=,YWJj"], "abc"), (["YWJj,YQ=="], "a"),
    (["YWJj , \tYQ==\t "], "a"), (["YQ", "YWI=,YWJj"], "abc"),
    (["YQ,"], ""), ([",YQ"], "a")])
def test_values_with_commas_between_are_values_of_their_own(server, values,
                                                            last):
    """As a proxy may join the lines of one name; a map has the last one."""
    assert binary(server, *values) == (0, last)


def test_values_with_commas_count(server):
    assert binary(server, ",".join(["YQ"] * 128)) == (0, "a")
    assert binary(server, ",".join(["YQ"] * 129)) == (3, None)
    assert binary(server, "YQ", ",".join(["YQ"] * 128)) == (3, None)


@pytest.mark.parametrize("value,status", [
    ("ü", 200), (b"\xc3", 400), (b"a\xff", 400), (b"\xed\xa0\x80", 400)])
def test_values_of_text_are_text(server, value, status):
    value = value if isinstance(value, bytes) else value.encode()
    head = b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nX-A: " \
        + value + b"\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port)) as s:
        s.sendall(head % len(json_body()) + json_body())
        answer = s.makefile("rb").read()
    assert answer.split()[1] == str(status).encode()
    if status == 400:
        assert b"Header 'X-A' holds no UTF-8 and cannot be forwarded." \
            in answer


def test_over_rest_a_name_in_bin_is_a_name(server):
    assert told(ask(server, {"x-a-bin": "YQ=="})) == {"x-a-bin": "YQ=="}


def test_what_grpc_itself_sends_is_no_metadata(server):
    with Client(server.port2, prefix="/every") as client:
        found = parameters(client.infer("echo", ONE, metadata=[("a", "1")]))
    assert found.pop("a") == "1"
    assert set(found) <= {"user-agent", "accept-encoding"}


def test_reserved_metadata(server):
    with Client(server.port2, prefix="/every") as client:
        with pytest.raises(Failure) as e:
            client.infer("echo", ONE, metadata=[("timeout", "1")])
    assert e.value.text == RESERVED.format("timeout")
    assert e.value.code.name == "INVALID_ARGUMENT"


def test_each_message_of_a_stream_has_them(server):
    with Client(server.port2) as client, \
            client.stream(metadata=[("x-a", "1")]) as stream:
        stream.send(infer("echo", ONE), infer("echo", ONE,
                                              options={"p": "q"}))
        first, second = stream.read(2)
        stream.end()
        assert isinstance(first, pb.ModelStreamInferResponse)
        assert parameters(first.infer_response) == {"x-a": "1"}
        assert parameters(second.infer_response) == {"p": "q", "x-a": "1"}
        assert stream.rest() == []


def test_calls_that_are_no_inference_do_not_look(server):
    assert server.get("/v2/models/echo", headers={"x-a": "1"}).status == 200
