"""The identity backend: several tensors, instances, delay, failures."""

import concurrent.futures
import time

import pytest

from lib import models
from lib.server import SLOW
from lib.wire import tensor


def test_several_inputs_of_different_types(make_server):
    server = make_server(lambda r: models.identity(
        r, "many", [("IN0", "INT8", [-1]), ("IN1", "BYTES", [-1]),
                    ("IN2", "FP64", [2, -1]), ("IN3", "BOOL", [-1])]))
    values = {"OUT0": [1, -2], "OUT1": ["a", "", "ccc"],
              "OUT2": [1.5, 2.5, 3.5, 4.5], "OUT3": [True]}
    answer = server.infer("many", {"inputs": [
        tensor("IN3", "BOOL", [1], values["OUT3"]),
        tensor("IN1", "BYTES", [3], values["OUT1"]),
        tensor("IN2", "FP64", [2, 2], values["OUT2"]),
        tensor("IN0", "INT8", [2], values["OUT0"])]})
    assert answer.status == 200, answer
    got = {o["name"]: o["data"] for o in answer.json()["outputs"]}
    assert got == values


def test_delay_delays(make_server):
    server = make_server(lambda r: models.identity(
        r, "slow", [("IN", "FP32", [-1])],
        parameters={"execute_delay_ms": "300"}))
    began = time.monotonic()
    assert server.infer("slow", {"inputs": [
        tensor("IN", "FP32", [1], [1])]}).status == 200
    assert time.monotonic() - began >= 0.3


@pytest.mark.parametrize("instances,least,most", [(1, 1.6, 30),
                                                  (4, 0.4, 1.2)])
def test_instances_run_side_by_side(make_server, instances, least, most):
    """scheduling.md 2.2"""
    server = make_server(lambda r: models.identity(
        r, "slow", [("IN", "FP32", [-1])], instances=instances,
        parameters={"execute_delay_ms": "200"}), workers=2)

    def one(i):
        answer = server.infer("slow", {"inputs": [
            tensor("IN", "FP32", [1], [i])]})
        return answer.json()["outputs"][0]["data"] == [i]

    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(one, range(8)))
    assert least <= time.monotonic() - began <= most * SLOW


def test_slow_model_does_not_hold_up_another(make_server):
    def fill(repository):
        models.identity(repository, "slow", [("IN", "FP32", [-1])],
                        parameters={"execute_delay_ms": "1500"})
        models.identity(repository, "fast", [("IN", "FP32", [-1])])

    server = make_server(fill)
    one = {"inputs": [tensor("IN", "FP32", [1], [1])]}
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        slow = pool.submit(server.infer, "slow", one)
        time.sleep(0.1)
        began = time.monotonic()
        for _ in range(20):
            assert server.infer("fast", one).status == 200
        assert time.monotonic() - began < 1.0 * SLOW
        assert slow.result().status == 200


def test_batch_of_a_batching_model_keeps_rows(make_server):
    server = make_server(lambda r: models.identity(
        r, "rows", [("IN", "INT32", [2])], max_batch=16, instances=2),
        workers=2)

    def one(i):
        rows = 1 + i % 7
        data = list(range(i, i + rows * 2))
        answer = server.infer("rows", {"inputs": [
            tensor("IN", "INT32", [rows, 2], data)]})
        out = answer.json()["outputs"][0]
        return out["data"] == data and out["shape"] == [rows, 2]

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert all(pool.map(one, range(300)))


def test_optional_input_may_be_left_out(make_server):
    server = make_server(lambda r: models.identity(
        r, "opt", [("IN0", "FP32", [-1]),
                   ("IN1", "FP32", [-1], "optional: true")]))
    answer = server.infer("opt", {"inputs": [
        tensor("IN0", "FP32", [1], [1])]})
    assert answer.status == 200, answer
    assert [o["name"] for o in answer.json()["outputs"]] == ["OUT0"]


def test_left_out_input_of_fixed_dims_is_zeros(make_server):
    """As with Triton's backend; rows are those of the other input."""
    server = make_server(lambda r: models.identity(
        r, "opt", [("IN0", "FP32", [-1]),
                   ("IN1", "INT16", [2, 3], "optional: true"),
                   ("IN2", "BYTES", [2], "optional: true")], max_batch=8))
    answer = server.infer("opt", {"inputs": [
        tensor("IN0", "FP32", [2, 1], [1, 2])]})
    assert answer.status == 200, answer
    got = {o["name"]: (o["shape"], o["data"])
           for o in answer.json()["outputs"]}
    assert got == {"OUT0": ([2, 1], [1, 2]), "OUT1": ([2, 2, 3], [0] * 12),
                   "OUT2": ([2, 2], [""] * 4)}


def test_each_instance_has_a_delay_of_its_own(make_server):
    """Of three instances the second sleeps 200 ms, the third 400 ms."""
    server = make_server(lambda r: models.identity(
        r, "slow", [("IN", "FP32", [-1])], instances=3,
        parameters={"execute_delay_ms": "100",
                    "instance_wise_delay_multiplier": "2"}))

    def one(i):
        began = time.monotonic()
        assert server.infer("slow", {"inputs": [
            tensor("IN", "FP32", [1], [i])]}).status == 200
        return time.monotonic() - began

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        took = sorted(pool.map(one, range(3)))
    for seconds, least in zip(took, (0.1, 0.2, 0.4)):
        assert least <= seconds, took
    assert took[0] < 0.2 * SLOW, took


def test_a_load_that_takes_its_time(make_server):
    server = make_server(lambda r: models.identity(
        r, "late", [("IN", "FP32", [-1])],
        parameters={"creation_delay_sec": "2"}), wait="live")
    assert server.get("/v2/models/late/ready").status != 200
    began = time.monotonic()
    while server.get("/v2/models/late/ready").status != 200:
        assert time.monotonic() - began < 20 * SLOW
        time.sleep(0.1)
    assert server.infer("late", {"inputs": [
        tensor("IN", "FP32", [1], [1])]}).status == 200


@pytest.mark.parametrize("outputs,words", [
    ([("OUT", "INT32", [-1])], ["FP32", "INT32"]),
    ([("OUT", "FP32", [-1, -1])], ["dimension"]),
    ([("A", "FP32", [-1]), ("B", "FP32", [-1])], ["outputs"])])
def test_configuration_that_does_not_fit(make_server, outputs, words):
    server = make_server(lambda r: models.identity(
        r, "misfit", [("IN", "FP32", [-1])], outputs=outputs), wait="live")
    server.wait_log("misfit")
    for word in words:
        server.wait_log(word)
    assert server.get("/v2/models/misfit/ready").status in (404, 503)
