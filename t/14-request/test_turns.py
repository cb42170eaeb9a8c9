"""A worker's event loop works on one request in slices and counts them."""

import gzip
import hashlib
import itertools
import json
import os

import pytest

from lib import models
from lib.exposition import figure
from lib.server import Server
from lib.upstream import Upstream
from lib.wire import request_bytes, tensor

MIB = 1 << 20
SLICE = MIB             # the most bytes that one turn may work on
PARTS = "health metadata config infer statistics repository metrics"
MANY = 300


def label(i):
    return f"{i:x<80}"


def fill(repository):
    models.standard_repository(repository)
    folder = models.identity(
        repository, "many_labels", [("IN", "FP32", [4])], max_batch=4,
        outputs=[("OUT", "FP32", [4], 'label_filename: "labels.txt"')])
    (folder / "labels.txt").write_text(
        "".join(label(i) + "\n" for i in range(300_000)))
    note = "a parameter of some length, of which there are very many; " * 5
    models.identity(repository, "wordy", [("IN", "INT32", [-1])],
                    parameters={f"p{i}": note + str(i) for i in range(10000)})
    for i in range(MANY):
        models.identity(repository, f"one_of_many_{i:03}",
                        [("IN", "INT32", [-1])])


@pytest.fixture(scope="module")
def server():
    with Upstream() as upstream, Server(fill, parts=PARTS, http="""
        inference_model_control explicit;
        inference_load_model *;
    """, server=f"""
        location /handed/ {{
            inference infer;
            inference_intercept_errors on;
            error_page 404 = @upstream;
        }}
        location @upstream {{
            proxy_pass http://127.0.0.1:{upstream.port};
        }}
    """) as s:
        s.upstream = upstream
        yield s


def slices_of(server, ask):
    before = figure(server, "slices_total")
    answer = ask()
    assert answer.status == 200, answer
    return answer, figure(server, "slices_total") - before


def test_json_is_read_and_written_in_slices(server):
    values = list(range(1_200_000))
    body = json.dumps({"inputs": [
        tensor("IN", "INT32", [len(values)], values)]}).encode()
    answer, slices = slices_of(
        server, lambda: server.post("/v2/models/id_int32/infer", body))
    assert answer.json()["outputs"][0]["data"] == values
    # it is read once, and the numbers in it are read and written once more
    assert slices >= 2 * len(body) // SLICE


def test_a_small_request_needs_no_second_turn(server):
    body = json.dumps({"inputs": [tensor("IN", "INT32", [1], [1])]}).encode()
    _, slices = slices_of(
        server, lambda: server.post("/v2/models/id_int32/infer", body))
    assert slices == 0


@pytest.mark.parametrize("encoding", [None, "gzip"])
def test_a_large_answer_of_a_call_is_whole(server, encoding):
    headers = {"Accept-Encoding": encoding} if encoding else {}
    answer, slices = slices_of(server, lambda: server.get(
        "/v2/models/wordy/config", headers=headers))
    assert len(answer.body) > 3 * MIB
    parameters = answer.json()["parameters"]
    assert len(parameters) == 10000
    assert parameters["p9999"]["string_value"].endswith("; 9999")
    # the worker passes on what the core has made
    assert slices == 0


def test_answers_about_many_models(server):
    answer, slices = slices_of(server, lambda: server.get("/v2/models/stats"))
    names = {m["name"] for m in answer.json()["model_stats"]}
    assert {f"one_of_many_{i:03}" for i in range(MANY)} <= names
    answer, more = slices_of(
        server, lambda: server.post("/v2/repository/index", b""))
    names = {m["name"] for m in answer.json()}
    assert {f"one_of_many_{i:03}" for i in range(MANY)} <= names
    assert slices == more == 0


def test_the_longest_turn_is_told():
    """No processor reads a slice of numbers in 200 us."""
    body = json.dumps({"inputs": [
        tensor("IN", "INT32", [1_200_000], list(range(1_200_000)))]}).encode()
    with Server(models.standard_repository, parts=PARTS) as own:
        assert own.post("/v2/models/id_int32/infer", body).status == 200
        assert figure(own, "longest_turn_us") > 200


def classify(server, k, rows):
    answer = server.infer("many_labels", {
        "inputs": [tensor("IN", "FP32", [len(rows), 4], sum(rows, []))],
        "outputs": [{"name": "OUT", "parameters": {"classification": k}}]})
    assert answer.status == 200, answer
    return answer.json()["outputs"][0]["data"]


def test_labels_that_nobody_asked_for_stay_in_the_core(server):
    """All of them together are more than a response's record may hold."""
    rows = [[1, 5, 2, 3], [9, 7, 6, 8]]
    assert classify(server, 1, rows[:1]) == ["5.000000:1:" + label(1)]
    assert classify(server, 2, rows) == [
        "5.000000:1:" + label(1), "3.000000:3:" + label(3),
        "9.000000:0:" + label(0), "8.000000:3:" + label(3)]
    assert len(classify(server, 1_000_000, rows)) == 8


def chunks(data):
    """data as chunks of 1 MiB, and the end of the body."""
    return [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (
        data[i:i + MIB] for i in range(0, len(data), MIB))] + [b"0\r\n\r\n"]


def alternately(server, path, bodies, headers):
    """Chunked bodies that grow side by side, so that neither can stay."""
    connections = [server.wire(60) for _ in bodies]
    head = request_bytes("POST", path, headers={
        **headers, "Transfer-Encoding": "chunked"})
    for connection in connections:
        connection.send(head)
    for pieces in itertools.zip_longest(*map(chunks, bodies)):
        for connection, piece in zip(connections, pieces):
            connection.send(piece or b"")
    answers = [connection.read() for connection in connections]
    for connection in connections:
        connection.close()
    return answers


def test_raw_bodies_move_as_they_grow(server):
    bodies = [os.urandom(size) for size in (
        24 * MIB + 5, 17 * MIB, 8 * MIB, 16 * MIB + 1)]
    for body, answer in zip(bodies, alternately(
            server, "/v2/models/id_uint8/infer", bodies,
            {"Inference-Header-Content-Length": "0"})):
        assert answer.status == 200, answer
        assert answer.split()[1] == body


def test_json_bodies_move_as_they_grow(server):
    values = [[seed + i * 7 % 1000 for i in range(count)]
              for seed, count in ((0, 900_000), (5, 1_500_000), (9, 400_000))]
    bodies = [json.dumps({"inputs": [
        tensor("IN", "INT32", [len(v)], v)]}).encode() for v in values]
    bodies.append(gzip.compress(bodies[1], 1))
    for i, answer in enumerate(alternately(
            server, "/v2/models/id_int32/infer", bodies[:3], {})):
        assert answer.status == 200, answer
        assert answer.json()["outputs"][0]["data"] == values[i]
    for answer in alternately(server, "/v2/models/id_int32/infer",
                              bodies[3:] * 3, {"Content-Encoding": "gzip"}):
        assert answer.status == 200, answer
        assert answer.json()["outputs"][0]["data"] == values[1]


def test_tensors_behind_json_move_as_they_grow(server):
    sizes = [9 * MIB, 12 * MIB + 3, 4 * MIB]
    tails = [os.urandom(size) for size in sizes]
    headers = [json.dumps({"inputs": [tensor(
        "IN", "UINT8", [size], binary_data_size=size)],
        "parameters": {"binary_data_output": True}}).encode()
        for size in sizes]
    width = max(map(len, headers))
    bodies = [header.ljust(width) + tail
              for header, tail in zip(headers, tails)]
    for tail, answer in zip(tails, alternately(
            server, "/v2/models/id_uint8/infer", bodies,
            {"Inference-Header-Content-Length": str(width)})):
        assert answer.status == 200, answer
        assert tail in answer.body


def test_a_body_that_moved_is_handed_on(server):
    server.upstream.requests.clear()
    bodies = [b"?" + os.urandom(size)
              for size in (9 * MIB, 10 * MIB, 4 * MIB - 1)]
    answers = alternately(server, "/handed/v2/models/id_uint8/infer", bodies,
                          {"Inference-Header-Content-Length": "0"})
    assert {answer.status for answer in answers} == {200}
    answers = alternately(server, "/handed/v2/models/ghost/infer", bodies,
                          {"Inference-Header-Content-Length": "0"})
    assert {answer.status for answer in answers} == {200}
    assert sorted(r["sha256"] for r in server.upstream.requests) \
        == sorted(hashlib.sha256(body).hexdigest() for body in bodies)


def test_a_large_call_moves_too(server):
    names = [b'{"parameters": {"unknown": "' + b"x" * size + b'"}}'
             for size in (4 * MIB - 32, 8 * MIB, 3 * MIB)]
    for answer in alternately(server, "/v2/repository/models/none/load",
                              names, {}):
        assert answer.status == 400, answer
        assert "unknown" in answer.error or "none" in answer.error, answer
