"""Behind a tensor lie zeros, never what an earlier request has left."""

import json

import pytest

from lib import backends, models
from lib.server import Server
from lib.wire import chunked, request_bytes, tensor

MARK = b"\xa5"
SIZES = [10, 1, 64, 100, 3]


def fill(repository):
    models.standard_repository(repository)
    models.write_model(repository, "overread", models.identity_config(
        "overread", [(f"I{i}", "UINT8", [-1]) for i in range(len(SIZES))],
        [("OUT", "UINT8", [-1])], backend="overread"))
    models.write_model(repository, "overread_one", models.identity_config(
        "overread_one", [("IN", "UINT8", [-1])],
        [("OUT", "UINT8", [-1])], backend="overread"))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("backends")
    backends.build("overread", folder)
    backends.copy_identity(folder / "identity")
    with Server(fill, backends=folder) as s:
        yield s


def leave_marks(server):
    """Every size class of regions a request takes holds an earlier tensor."""
    raw = {"Inference-Header-Content-Length": "0"}
    for size in (65536, 1 << 20):
        assert server.post("/v2/models/id_uint8/infer", MARK * size,
                           raw).status == 200
    for size in (64, 128, 256, 320, 512, 1024, 4096):
        assert server.post("/v2/models/id_uint8/infer", MARK * size,
                           raw).status == 200
        text = {"inputs": [tensor("IN", "UINT8", [size], [MARK[0]] * size)]}
        assert server.infer("id_uint8", text).status == 200


def expected(parts):
    return b"".join(p + bytes(-len(p) % 64) for p in parts)


def request(how, parts):
    """(text, tail) of a request for these tensors."""
    inputs = [tensor(f"I{i}", "UINT8", [len(p)], list(p)) if how == "JSON"
              else tensor(f"I{i}", "UINT8", [len(p)], binary_data_size=len(p))
              for i, p in enumerate(parts)]
    text = json.dumps({"inputs": inputs,
                       "parameters": {"binary_data_output": True}})
    return text.encode(), b"" if how == "JSON" else b"".join(parts)


@pytest.mark.parametrize("how", ["binary", "chunked", "JSON"])
def test_gap_behind_each_tensor_is_zero(server, how):
    parts = [bytes(range(1, n + 1)) for n in SIZES]
    text, tail = request(how, parts)
    for _ in range(3):
        leave_marks(server)
        with server.wire() as connection:
            if how == "chunked":
                connection.send(request_bytes(
                    "POST", "/v2/models/overread/infer", headers={
                        "Transfer-Encoding": "chunked",
                        "Inference-Header-Content-Length": str(len(text))}))
                connection.send(chunked(text + tail, 7))
                answer = connection.read()
            else:
                answer = connection.infer("overread", text, tail)
        assert answer.status == 200, answer
        assert answer.split()[1] == expected(parts)


@pytest.mark.parametrize("size", [1, 63, 100, 4097])
@pytest.mark.parametrize("how", ["raw", "lagging"])
def test_end_of_a_body_in_one_piece_is_followed_by_zeros(server, how, size):
    """raw: no JSON at all; lagging: so much that tensors do not wait."""
    part = bytes(i % 255 + 1 for i in range(size))
    text = b"" if how == "raw" else json.dumps({
        "inputs": [tensor("IN", "UINT8", [size], binary_data_size=size)],
        "parameters": {"binary_data_output": True}}).encode()
    text += b" " * (0 if how == "raw" else 300_000)
    for _ in range(3):
        leave_marks(server)
        answer = server.post("/v2/models/overread_one/infer", text + part, {
            "Inference-Header-Content-Length": str(len(text))})
        assert answer.status == 200, answer
        assert answer.split()[1] == expected([part])
