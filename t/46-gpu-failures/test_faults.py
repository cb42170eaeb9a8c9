"""A kernel that faults, or a GPU that is lost, while the core serves."""

import base64
import concurrent.futures
import contextlib
import json
import os
import signal

import pytest

from lib import models, process, repository
from lib.load import Load
from lib.server import SLOW
from lib.wire import tensor

pytestmark = pytest.mark.fake_gpu         # failures on order

INT = [("IN", "INT32", [1])]
BY_RESPONSE, BY_EXECUTE, WAITS, BY_ANOTHER_THREAD = -1, -2, -3, -4
FAULT = "CUDA_ERROR_ILLEGAL_ADDRESS"
LOST = "CUDA_ERROR_UNKNOWN"
WARMUP = ''' }
model_warmup {
  name: "w" batch_size: 1
  inputs { key: "IN" value {
    data_type: TYPE_INT32 dims: 1 input_data_file: "fault" } }
'''


@pytest.mark.parametrize("how", [BY_RESPONSE, BY_EXECUTE])
def test_a_faulting_kernel_costs_its_request_and_one_restart(gpus, how):
    server = gpus.start()
    core = server.core()
    assert gpus.serves("zero", "one", "host")

    def once(connection):
        answer = connection.infer(
            "host", {"inputs": [{"name": "IN", "datatype": "INT32",
                                 "shape": [1], "data": [1]}]})
        return answer.status == 200

    with Load(server.port, once, count=2) as load:
        load.wait_for_more(10)
        answer = gpus.ask("zero", how)
        assert answer.status == 500 and FAULT in answer.error, answer
        core = gpus.settles(core, "zero", "one", "host")
        load.wait_for_more(10)
    assert set(load.results) == {True}, load.results
    server.wait_log("model=zero version=1 was executing, 1 in a row")
    assert gpus.ends() == 1
    assert gpus.serves("zero", "one", "host")
    assert server.core() == core
    assert server.get("/v2/health/ready").status == 200


def test_who_executes_beside_it_is_answered_by_the_next_core(gpus):
    server = gpus.start()
    core = server.core()
    gpus.gate.touch()

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        innocent = pool.submit(gpus.ask, "zero", WAITS)
        assert process.wait_until(gpus.waiting, 10 * SLOW)
        guilty = pool.submit(gpus.ask, "zero", BY_RESPONSE)
        server.next_core(core)
        gpus.gate.unlink()
        answer = innocent.result(60 * SLOW)
        assert answer.status == 200, answer
        assert answer.json()["outputs"][0]["data"] == [WAITS]
        answer = guilty.result(60 * SLOW)
        assert answer.status == 500 and FAULT in answer.error, answer
    assert process.wait_until(lambda: gpus.ends() == 2, 30 * SLOW)
    assert process.wait_until(
        lambda: gpus.ask("zero", 5).status == 200, 60 * SLOW)


EXPLICIT = """
    inference_model_control explicit;
    inference_load_model zero;
    inference_load_model twin;
"""


@contextlib.contextmanager
def beside_a_load(gpus, tmp_path):
    """A server with zero and twin on GPU 0, where "slow" loads until the end of
    the block."""
    gate = tmp_path / "load"
    gate.touch()

    def fill(folder):
        gpus.fill(folder)
        gpus.model(folder, "twin", "kind: KIND_GPU gpus: [0]")
        gpus.model(folder, "slow", "kind: KIND_GPU gpus: [1]", load="wait",
                   gate=str(gate))

    server = gpus.start(fill, http=EXPLICIT)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(repository.ask, server, "load", "slow")
        try:
            assert process.wait_until(gate.with_suffix(".waits").exists,
                                      20 * SLOW)
            yield server
        finally:
            gate.unlink()


def test_a_load_is_not_to_blame_for_several_models_that_execute(
        gpus, tmp_path):
    with beside_a_load(gpus, tmp_path) as server:
        core = server.core()
        gpus.gate.touch()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            pool.submit(gpus.ask, "zero", WAITS)
            assert process.wait_until(gpus.waiting, 10 * SLOW)
            pool.submit(gpus.ask, "twin", BY_RESPONSE)
            server.next_core(core)
            gpus.gate.unlink()
    gpus.settles(core, "zero", "twin")
    server.wait_log("model=twin version=1 was executing")
    assert "was loading" not in server.log_text()


def test_nobody_is_to_blame_where_a_model_loads_and_one_executes(
        gpus, tmp_path):
    with beside_a_load(gpus, tmp_path) as server:
        core = server.core()
        gpus.gate.touch()
        assert gpus.ask("zero", BY_ANOTHER_THREAD).status == 200
    gpus.settles(core, "zero", "twin")
    assert gpus.ends() == 1
    assert "was executing" not in server.log_text()
    assert "was loading" not in server.log_text()


def test_a_step_of_an_ensemble_costs_one_restart(gpus):
    def fill(folder):
        gpus.fill(folder)
        models.ensemble(folder, "whole", INT, [("OUT", "INT32", [1])],
                        models.step("zero", {"IN": "IN"}, {"OUT": "OUT"}))

    server = gpus.start(fill)
    core = server.core()
    answer = gpus.ask("whole", BY_RESPONSE)
    assert answer.status == 500 and FAULT in answer.error, answer
    gpus.settles(core, "zero", "whole")
    assert gpus.ends() == 1


def test_a_step_is_answered_while_others_are_under_way(gpus):
    """Also through an ensemble in an ensemble."""
    def fill(folder):
        gpus.fill(folder)
        outs = [("OUT", "INT32", [1]), ("OTHER", "INT32", [1])]
        both = [("IN", "INT32", [1]), ("WAITS", "INT32", [1])]
        models.ensemble(folder, "inner", both, outs,
                        models.step("one", {"IN": "WAITS"}, {"OUT": "OTHER"}),
                        models.step("zero", {"IN": "IN"}, {"OUT": "OUT"}))
        models.ensemble(
            folder, "outer", both, outs, models.step(
                "inner", {n: n for n, *_ in both}, {n: n for n, *_ in outs}))

    server = gpus.start(fill)
    core = server.core()
    gpus.gate.touch()
    answer = server.infer("outer", {"inputs": [
        tensor("IN", "INT32", [1], [BY_RESPONSE]),
        tensor("WAITS", "INT32", [1], [WAITS])]})
    assert answer.status == 500 and FAULT in answer.error, answer
    gpus.gate.unlink()
    gpus.settles(core, "zero", "one", "host")
    assert gpus.ends() == 1


def test_an_error_that_another_thread_sends_is_held_back(gpus):
    server = gpus.start()
    core = server.core()
    gpus.gate.touch()
    answer = gpus.ask("zero", BY_ANOTHER_THREAD)
    assert answer.status == 200, answer
    assert answer.json()["outputs"][0]["data"] == [BY_ANOTHER_THREAD]
    gpus.settles(core, "zero", "one", "host")
    assert gpus.ends() == 1


def test_a_model_that_breaks_its_gpu_again_and_again_is_quarantined(gpus):
    server = gpus.start()
    for _ in range(5):
        core = server.core()
        answer = gpus.ask("zero", BY_RESPONSE)
        assert answer.status == 500, answer
        gpus.settles(core, "one", "host")
    gpus.is_out("zero", "the core died 5 times while this model was executing")
    assert gpus.serves("one", "host")
    assert gpus.ends() == 5


@pytest.mark.parametrize("where", ["instance", "warmup"])
def test_a_load_that_breaks_its_gpu_is_quarantined(gpus, where):
    def fill(folder):
        gpus.fill(folder)
        group = "kind: KIND_GPU gpus: [0]"
        if where == "instance":
            gpus.model(folder, "late", group, load="fault")
        else:
            gpus.model(folder, "late", group + WARMUP)
            (folder / "late/warmup").mkdir()
            (folder / "late/warmup/fault").write_bytes(b"\xff" * 4)

    server = gpus.start(fill, wait="")
    assert process.wait_until(
        lambda: any(r["name"] == "late" and "died 2 times while this model"
                    " was loading" in r.get("reason", "")
                    for r in rows_of(server)), 60 * SLOW), server.log_text()
    assert process.wait_until(
        lambda: all(gpus.ask(n, 5).status == 200
                    for n in ("zero", "one", "host")), 60 * SLOW)
    # a load beside it may see the fault first: it is loaded again, alone
    assert gpus.ends() in (2, 3)


def rows_of(server):
    answer = repository.ask(server, "index")
    return answer.json() if answer.status == 200 else []


def test_a_lost_gpu_is_left_out_by_the_next_core(gpus):
    server = gpus.start()
    core = server.core()
    gpus.lost.write_text("1")
    answer = gpus.ask("one", 5)
    assert answer.status in (500, 503), answer
    core = gpus.settles(core, "zero", "host")
    gpus.is_out("one", "GPU 1 is left out", LOST)
    assert gpus.serves("zero", "host")
    assert server.core() == core
    assert gpus.ends() == 1

    # it is back, and the next core finds it
    gpus.lost.unlink()
    os.kill(core, signal.SIGQUIT)
    gpus.settles(core, "zero", "one", "host")


def test_a_failure_that_a_call_of_the_core_meets(gpus):
    """No execution is under way: the next question for readiness tells."""
    server = gpus.start(parts="shared_memory")
    core = server.core()
    gpus.order("cuIpcOpenMemHandle_v2:719:1:0")
    handle = base64.b64encode(bytes(64)).decode()
    answer = server.post(
        "/v2/cudasharedmemory/region/r/register",
        json.dumps({"raw_handle": {"b64": handle}, "device_id": 0,
                    "byte_size": 64}).encode())
    assert answer.status != 200, answer
    server.get("/v2/health/ready")
    gpus.settles(core, "zero", "one", "host")
    server.wait_log(r"GPU 0 has failed, and answers every call by"
                    r" CUDA_ERROR_LAUNCH_FAILED \(719\)")
    assert gpus.ends() == 1
    assert "was executing" not in server.log_text()


def test_all_gpus_are_lost(gpus):
    server = gpus.start()
    core = server.core()
    gpus.lost.write_text("0 1")
    assert gpus.ask("zero", 5).status in (500, 503)
    core = gpus.settles(core, "host")
    gpus.is_out("zero", "GPU 0 is left out", LOST)
    gpus.is_out("one", "GPU 1 is left out", LOST)
    assert server.core() == core


def test_eight_gpus_of_which_one_is_lost(gpus):
    def fill(folder):
        for i in range(8):
            gpus.model(folder, f"g{i}", f"kind: KIND_GPU gpus: [{i}]")

    names = [f"g{i}" for i in range(8)]
    server = gpus.start(fill, devices=8)
    core = server.core()
    assert gpus.serves(*names)
    gpus.lost.write_text("6")
    assert gpus.ask("g6", 5).status in (500, 503)
    names.remove("g6")
    gpus.settles(core, *names)
    gpus.is_out("g6", "GPU 6 is left out", LOST)
