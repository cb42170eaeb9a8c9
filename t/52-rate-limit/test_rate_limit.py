"""The rate limiter across models; numbers are those of the scheduling
reference's section 5."""

import json

import pytest

from lib import models, process, python_backend
from lib.limits import good
from lib.server import BACKENDS, SLOW, nap
from lib.wire import infer_path, request_bytes, tensor

ONE = 'resources { name: "R1" count: 1 }'
TWO = 'resources { name: "R1" count: 2 }'
GLOBAL = 'resources { name: "R1" global: true count: 1 }'


def hold(limited, name, execution=0):
    """That execution of the model, held at its gate."""
    limited.gates[name].close(execution)
    first = limited.ask(name)
    limited.gates[name].wait_entered(execution)
    return first


@pytest.mark.parametrize("limiter", [ONE, GLOBAL])
def test_models_that_share_a_resource_never_run_at_once(limited, limiter):
    """scheduling.md 5.5 to 5.7"""
    for name in ("a", "b"):
        limited.model(name, limiter, backend="recorder", lasts=2)
    limited.start(workers=2)
    good([limited.ask(name) for _ in range(30) for name in ("a", "b")])
    assert sorted(limited.executed()) == ["a"] * 30 + ["b"] * 30
    assert limited.at_once() == 1


def test_one_waits_until_the_other_is_done(limited):
    limited.model("a", TWO)
    limited.model("b", ONE)
    limited.start()
    first = hold(limited, "a")
    second = limited.ask("b")
    limited.wait_queued("b", 1)
    nap(0.3)
    assert not limited.entered("b")
    assert limited.server.get("/v2/health/ready").status == 200
    limited.gates["a"].open()
    good([first, second])


@pytest.mark.parametrize("lines,mode", [
    (["R1 3"], "execution_count"), (["R1 2", "R1 3 0"], "execution_count"),
    ([], "off"), (["R1 1", "R2 1"], "off")])
def test_with_plenty_or_without_limits_both_run(limited, lines, mode):
    """scheduling.md 5.2 and 5.9"""
    limited.model("a", TWO)
    limited.model("b", ONE)
    limited.start(*lines, mode=mode)
    first = hold(limited, "a")
    second = hold(limited, "b")
    assert not first.done()
    limited.gates["a"].open()
    limited.gates["b"].open()
    good([first, second])


def test_priority_two_gets_half_the_turns(limited):
    """scheduling.md 5.1: both have a queue when the resource becomes free"""
    limited.model("gate", ONE)
    limited.model("one", ONE + " priority: 1", backend="recorder", lasts=1)
    limited.model("two", ONE + " priority: 2", backend="recorder", lasts=1)
    limited.start()
    first = hold(limited, "gate")
    futures = [limited.ask(name) for _ in range(20)
               for name in ("one", "two")]
    limited.wait_queued("one", 20)
    limited.wait_queued("two", 20)
    limited.gates["gate"].open()
    good([first, *futures])
    turns = limited.executed()[:24]
    assert turns.count("one") > 1.5 * turns.count("two"), turns
    assert turns.count("two") >= 6, turns


def test_who_can_run_does_not_wait_for_who_cannot(limited):
    """scheduling.md 5.8"""
    limited.model("a", ONE)
    limited.model("b", ONE)
    limited.model("c", "", backend="recorder")
    limited.model("d", 'resources { name: "R2" count: 9 } priority: 9',
                  backend="recorder")
    limited.start()
    first = hold(limited, "a")
    second = limited.ask("b")
    limited.wait_queued("b", 1)
    good([limited.ask(name) for _ in range(10) for name in ("c", "d")])
    assert not limited.entered("b")
    limited.gates["a"].open()
    good([first, second])


def test_instances_of_one_model_have_their_own_needs(limited):
    """scheduling.md 5.10: with 4 copies never both, and all is done"""
    limited.model("m", 'resources { name: "R1" count: 4 }',
                  backend="recorder", lasts=3,
                  more='instance_group { kind: KIND_CPU rate_limiter {'
                       ' resources { name: "R1" count: 2 } } }')
    limited.start("R1 4")
    good([limited.ask("m") for _ in range(40)])
    assert limited.at_once() == 1
    names = [w[1] for w in limited.lines() if w[0] == "exec"]
    assert len(names) == 40
    assert len(set(names)) == 2


CALLS_A = """\
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        (request,) = requests
        answer = pb.InferenceRequest(
            model_name="a", requested_output_names=["OUT"],
            inputs=[pb.get_input_tensor_by_name(request, "IN")]).exec()
        return [pb.InferenceResponse(answer.output_tensors())]
"""


def test_what_is_kept_for_one_stops_no_call_for_ever(limited):
    """An execution of `calls` holds what `big` lacks and waits for `a`, whose
    copy is kept for `big`, which `a` has passed too often."""
    limited.model("a", ONE)
    limited.model("big", TWO)
    server = limited.start(
        "R1 2", http="    inference_model_control explicit;\n"
        f"    inference_backends {BACKENDS};\n",
        inference_env=[f'"PATH={python_backend.INTERPRETER.parent}:/bin"'],
        parts="health metadata config infer repository")
    python_backend.model(
        server.models, "calls",
        models.io_block("input", [("IN", "INT32", [1, 1])])
        + models.io_block("output", [("OUT", "INT32", [1, 1])])
        + f"instance_group {{ kind: KIND_CPU rate_limiter {{ {ONE} }} }}\n",
        CALLS_A)
    for name in ("a", "big", "calls"):
        answer = server.post(f"/v2/repository/models/{name}/load", b"")
        assert answer.status == 200, answer

    futures = [hold(limited, "a")]
    futures += [limited.ask("a") for _ in range(8)]
    limited.wait_queued("a", 8)
    futures.append(limited.ask("big"))
    limited.wait_queued("big", 1)
    futures.append(limited.ask("calls"))
    limited.wait_queued("a", 9)
    limited.gates["a"].open()
    good(futures)


def test_a_batch_grows_until_its_instance_may_run(limited):
    """scheduling.md 5.11"""
    limited.model("a", ONE)
    limited.model("b", ONE, backend="recorder", max_batch=4, extra=(
        "dynamic_batching { preferred_batch_size: [ 1, 2, 3, 4 ]"
        " max_queue_delay_microseconds: 5000000 }"))
    limited.start()
    first = hold(limited, "a")
    futures = [limited.ask("b") for _ in range(40)]
    limited.wait_queued("b", 40)
    limited.gates["a"].open()
    good([first, *futures])
    assert [w[3] for w in limited.lines() if w[0] == "exec"] == ["4"] * 10


def test_a_client_that_goes_takes_its_request_along(limited):
    """scheduling.md 8.11"""
    limited.model("a", ONE)
    limited.model("b", ONE, backend="recorder")
    server = limited.start()
    first = hold(limited, "a")
    body = json.dumps({"inputs": [tensor("IN", "INT32", [1, 1], [1])]})
    with server.wire() as gone:
        gone.send(request_bytes("POST", infer_path("b"), body.encode()))
        limited.wait_queued("b", 1)
    limited.wait_queued("b", 0)
    limited.gates["a"].open()
    good([first])
    assert limited.executed() == []
    good([limited.ask("b")])
    assert limited.executed() == ["b"]


def test_a_warm_up_waits_for_its_turn_too(limited):
    limited.model("a", ONE, backend="recorder", lasts=5)
    limited.model("b", ONE, backend="recorder", lasts=5, extra=(
        'model_warmup [ { name: "w" batch_size: 1 count: 20 inputs { key: "IN"'
        " value { data_type: TYPE_INT32 dims: 1 zero_data: true } } } ]"))
    limited.start(wait="live")
    assert process.wait_until(
        lambda: limited.server.get("/v2/models/a/ready").status == 200,
        20 * SLOW)
    good([limited.ask("a") for _ in range(20)])
    assert limited.server.wait_for("/v2/models/b/ready")
    assert limited.at_once() == 1


@pytest.mark.parametrize("line,found", [
    ("resource1 1", 1), ("resource1 10 10", 0), ("other 5", 0),
    ("resource1 0", 0)])
def test_a_model_that_asks_for_too_much_is_not_loaded(limited, line, found):
    """scheduling.md 5.3"""
    limited.model("hungry", 'resources { name: "resource1" count: 4 }')
    limited.model("modest", "")
    server = limited.start(line, wait="live")
    server.wait_log(
        r'model=hungry version=1 failed to load: .*Resource count for'
        rf' "resource1" is limited to {found} which will prevent scheduling of'
        r' one or more model instances, the minimum required count is 4')
    assert server.wait_for("/v2/models/modest/ready")
    assert server.get("/v2/models/hungry/ready").status != 200
    good([limited.ask("modest")])


def test_a_resource_is_global_for_all_or_for_none(limited):
    """scheduling.md 5.4"""
    limited.model("a", GLOBAL)
    limited.model("b", ONE)
    server = limited.start(wait="live")
    server.wait_log(
        r'model=[ab] version=1 failed to load: .*Resource "R1" is present as'
        r' both global and device-specific resource in the model'
        r' configuration\.')
    assert process.wait_until(lambda: [server.get(
        f"/v2/models/{m}/ready").status for m in "ab"].count(200) == 1,
        10 * SLOW)


def test_an_unload_takes_its_copies_along(limited):
    limited.model("a", ONE)
    limited.model("b", ONE)
    limited.model("big", TWO)
    server = limited.start(
        http="    inference_model_control explicit;\n",
        parts="health metadata config infer repository")
    for name in ("a", "b", "big"):
        assert server.post(f"/v2/repository/models/{name}/load",
                           b"").status == 200
    both = [hold(limited, "a"), hold(limited, "b")]
    limited.gates["a"].open()
    limited.gates["b"].open()
    good(both)

    assert server.post("/v2/repository/models/big/unload", b"").status == 200
    server.wait_log(r"model=big .*unloaded")
    first = hold(limited, "a", 1)
    second = limited.ask("b")
    limited.wait_queued("b", 1)
    nap(0.3)
    assert not limited.entered("b", 1)

    assert server.post("/v2/repository/models/big/load", b"").status == 200
    limited.gates["b"].wait_entered(1)      # there is room again at once
    limited.gates["a"].open(1)
    good([first, second])


def test_off_nothing_is_even_checked(limited):
    """scheduling.md 5.9"""
    limited.model("a", 'resources { name: "R1" count: 0 } '
                  'resources { name: "R1" global: true count: 9 }')
    limited.start("R1 1", mode="off")
    good([limited.ask("a")])


def test_a_reload_says_what_waits_for_the_next_core(limited):
    limited.model("a", ONE)
    server = limited.start("R1 1")
    server.write_config(http="    inference_rate_limit off;\n")
    server.signal("HUP")
    server.wait_log(r"inference_rate_limit, inference_rate_limit_resource")
    good([limited.ask("a")])
