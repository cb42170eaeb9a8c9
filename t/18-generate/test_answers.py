"""Answers of generate, by model and by what the model does."""

import pytest

from lib import events

ONE = "generate expects model to produce exactly 1 response, use generate " \
    "stream for model that generates various number of responses"


def test_an_answer(ask):
    answer = ask("id_int32", {"IN": [1, 2]})
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.body == b'{"OUT":[1,2],"model_name":"id_int32",' \
        b'"model_version":"1"}'


def test_reals_are_as_those_of_infer(ask):
    answer = ask("id_fp32", {"IN": [0.1, 1, 1e30]})
    assert b'"OUT":[0.1,1.0,1e30]' in answer.body


def test_long_answers(ask):
    values = [i / 3 for i in range(200_000)]
    assert ask("id_fp64", {"IN": values}).json()["OUT"] == values


@pytest.mark.parametrize("n", [0, 2, 5, -1, -2])
def test_one_response_is_expected(ask, n):
    """Triton's status is that of the first response, and 200 without one."""
    answer = ask("square", {"IN": n})
    assert (answer.status, answer.error) == (200, ONE)


def test_one_response_of_a_decoupled_model(ask):
    assert ask("square", {"IN": 1}).json()["OUT"] == 1


def test_precise_errors_have_a_status(start):
    server = start(http="    inference_errors precise;")
    for n in (0, 2):
        answer = events.post(server.port, events.path("square"), {"IN": n})
        assert (answer.status, answer.error) == (500, ONE)


def test_wrong_methods(server):
    for verb in ("generate", "generate_stream"):
        with server.wire() as connection:
            for method in ("GET", "HEAD", "PUT", "DELETE"):
                path = events.path("id_int32", verb)
                connection.send(f"{method} {path} HTTP/1.1\r\nHost: x\r\n"
                                "\r\n".encode())
                answer = connection.read(head=method == "HEAD")
                assert answer.status == 405, method


def test_infer_still_rejects_decoupled_models(server):
    with server.wire() as connection:
        answer = connection.infer("square", {"inputs": [
            {"name": "IN", "datatype": "INT32", "shape": [1], "data": [1]}]})
    assert answer.status == 501


def test_a_header_of_infer_means_nothing(ask):
    for value in ("0", "5", "x", "-1"):
        answer = ask("id_int32", {"IN": 1}, headers={
            "Inference-Header-Content-Length": value})
        assert answer.status == 200, value
