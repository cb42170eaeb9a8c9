"""Models that call other models: sync, async, decoupled, in sequences; what a
failed call says; memory afterwards."""

import json

import pytest

from lib import decoupled, models, python_backend
from lib.python_backend import TELL, TEXT, ask, differs, raised, text, told

PAIR = models.io_block("input", [("A", "FP32", [-1]), ("B", "FP32", [-1])]) \
    + models.io_block("output", [("SUM", "FP32", [-1]),
                                 ("DIFF", "FP32", [-1])])
ADD_SUB = """\
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for r in requests:
            a, b = (pb.get_input_tensor_by_name(r, n).as_numpy()
                    for n in "AB")
            if a.size and a[0] == -99:
                answers.append(pb.InferenceResponse(error=pb.TritonError(
                    "not with these", pb.TritonError.UNAVAILABLE)))
                continue
            answers.append(pb.InferenceResponse([
                pb.Tensor("SUM", a + b), pb.Tensor("DIFF", a - b)]))
        return answers
"""

# adds what a sequence has sent so far
TOTAL = TELL + """
class TritonPythonModel:
    def initialize(self, args):
        self.totals = {}
    def execute(self, requests):
        answers = []
        for r in requests:
            n = int(pb.get_input_tensor_by_name(r, "IN").as_numpy().ravel()[0])
            key = str(r.correlation_id())
            if r.flags() & pb.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START:
                self.totals[key] = 0
            self.totals[key] += n
            answers.append(tell([key, self.totals[key], r.flags()]))
        return answers
"""
TOTAL_IO = models.io_block("input", [("IN", "INT32", [1])]) \
    + models.io_block("output", [("OUT", "BYTES", [1])]) \
    + "sequence_batching { max_sequence_idle_microseconds: 60000000 }\n"

# awaits calls of its own while it awaits others
GATHER = TELL + """
import asyncio

class TritonPythonModel:
    async def execute(self, requests):
        return [tell(await self.one(r)) for r in requests]
    async def one(self, request):
        calls = [pb.InferenceRequest(
            model_name="add_sub", requested_output_names=["SUM"],
            inputs=[pb.Tensor("A", np.full(2, n, np.float32)),
                    pb.Tensor("B", np.ones(2, np.float32))]).async_exec()
            for n in range(10)]
        sums = [float(pb.get_output_tensor_by_name(r, "SUM").as_numpy()[0])
                for r in await asyncio.gather(*calls)]
        streams = await pb.InferenceRequest(
            model_name="square", requested_output_names=["OUT"],
            inputs=[pb.Tensor("IN", np.array([3], np.int32))]).async_exec(
                decoupled=True)
        squares = [pb.get_output_tensor_by_name(r, "OUT").as_numpy().tolist()
                   for r in streams if r.output_tensors()]
        return [sums, squares]
"""

# one response, and one more when it is cancelled, or never is
UNTIL_CANCELLED = TELL + """
import threading
import time

class TritonPythonModel:
    def execute(self, requests):
        for r in requests:
            threading.Thread(target=self.run, args=(
                r.get_response_sender(), r.request_id())).start()
    def run(self, sender, name):
        sender.send(tell("first"))
        for _ in range(1000):
            if sender.is_cancelled():
                pb.Logger.log_info(f"t {name} is cancelled")
                break
            time.sleep(0.01)
        sender.send(tell(sender.is_cancelled()), 1)
"""

# calls outside execute
EARLY = TELL + """
class TritonPythonModel:
    def initialize(self, args):
        try:
            pb.InferenceRequest(model_name="add_sub", inputs=[],
                                requested_output_names=[]).exec()
            self.said = ""
        except pb.TritonModelException as e:
            self.said = str(e)
    def execute(self, requests):
        return [tell(self.said) for r in requests]
"""

CALL = """
def call(a, b, names=("SUM", "DIFF"), model="add_sub", **more):
    return pb.InferenceRequest(
        model_name=model, requested_output_names=list(names),
        inputs=[pb.Tensor("A", np.array(a, np.float32)),
                pb.Tensor("B", np.array(b, np.float32))], **more)
def got(response, name):
    return pb.get_output_tensor_by_name(response, name).as_numpy().tolist()
"""


def fill(repository):
    for name, config, source in [
            ("add_sub", PAIR, ADD_SUB), ("total", TOTAL_IO, TOTAL),
            ("gather", TEXT, GATHER), ("early", TEXT, EARLY),
            ("until_cancelled", TEXT
             + "model_transaction_policy { decoupled: true }\n",
             UNTIL_CANCELLED)]:
        python_backend.model(repository, name, config, source)
    decoupled.square(repository)
    models.identity(repository, "copy", [("IN", "FP32", [-1, -1])])
    python_backend.probe(repository)
    python_backend.probe(repository, "caller")


@pytest.fixture(scope="module")
def server():
    with python_backend.serve(fill) as s:
        yield s


def test_sync(server):
    assert ask(server, CALL + """
result = []
for n in range(20):
    r = call([n, 2], [1, 1]).exec()
    assert not r.has_error() and r.error() is None
    result.append(got(r, "SUM") + got(r, "DIFF"))
""") == [[n + 1, 3, n - 1, 1] for n in range(20)]


def test_only_what_was_requested(server):
    assert ask(server, CALL + """
r = call([1], [2], ["DIFF"]).exec()
result = [t.name() for t in r.output_tensors()]
""") == ["DIFF"]


def test_an_output_that_is_requested_twice(server):
    assert ask(server, CALL + """
request = call([1], [2], ["SUM", "SUM"])
result = [t.name() for t in request.exec().output_tensors()]
result.append(list(request.requested_output_names()))
""") == ["SUM", ["SUM"]]


def test_strings_are_those_when_the_tensor_was_made(server):
    assert ask(server, """
import json
words = np.array([b"result = 1"], dtype=object)
request = pb.InferenceRequest(
    model_name="caller", requested_output_names=["OUT"],
    inputs=[pb.Tensor("CODE", words)])
words[0] = b"result = 2"
result = json.loads(request.exec().output_tensors()[0].as_numpy()[0])
""") == {"result": 1}


def test_a_model_s_name_as_an_input_has_it(server):
    assert ask(server, CALL + """
names = np.array([b"add_sub"], dtype=object)
r = call([1], [2], model=pb.Tensor("NAME", names).as_numpy()[0]).exec()
result = got(r, "SUM")
""") == [3]


def test_tensors_may_be_used_again_and_passed_on(server):
    assert ask(server, CALL + """
a, b = (pb.Tensor(n, np.array([n == "A"], np.float32)) for n in "AB")
responses = [pb.InferenceRequest(
    model_name="add_sub", requested_output_names=["SUM", "DIFF"],
    inputs=[a, b]).exec() for _ in range(3)]
result = [got(r, "SUM") for r in responses]
s = pb.get_output_tensor_by_name(responses[0], "SUM").as_numpy()
r = call(s, s).exec()
result.append(got(r, "SUM"))
""") == [[1], [1], [1], [2]]


def test_async(server):
    assert told(server.infer("gather", text("x"))) == [
        [n + 1 for n in range(10)], [[3]] * 3]


@pytest.mark.parametrize("count", [0, 1, 4])
def test_decoupled(server, count):
    assert ask(server, f"""
responses = pb.InferenceRequest(
    model_name="square", requested_output_names=["OUT"],
    inputs=[pb.Tensor("IN", np.array([{count}], np.int32))]).exec(
        decoupled=True)
result = [[t.as_numpy().tolist() for t in r.output_tensors()]
          for r in responses]
result = [r[0] for r in result if r]
""") == [[count]] * count


def test_an_iterator_goes_on_and_begins_again(server):
    assert ask(server, """
responses = pb.InferenceRequest(
    model_name="square", requested_output_names=["OUT"],
    inputs=[pb.Tensor("IN", np.array([4], np.int32))]).exec(decoupled=True)
next(responses)
result = [sum(1 for _ in responses)]        # the rest
result += [sum(1 for _ in responses)]       # all of them again
for n, _ in enumerate(responses):
    if n == 1:
        break
next(responses)
result += [sum(1 for _ in responses)]       # the rest again
try:
    next(responses)
except StopIteration:
    result += ["end"]
""") == [3, 4, 1, "end"]


def test_decoupled_call_of_an_ordinary_model(server):
    assert ask(server, CALL + """
responses = call([1], [2]).exec(decoupled=True)
first = next(responses)
result = got(first, "SUM")
try:
    while True:
        assert not next(responses).output_tensors()
except StopIteration:
    result.append("end")
""") == [3, "end"]


def test_ordinary_call_of_a_decoupled_model(server):
    assert ask(server, """
r = pb.InferenceRequest(
    model_name="square", requested_output_names=["OUT"],
    inputs=[pb.Tensor("IN", np.array([2], np.int32))]).exec()
result = r.error().message()
""").endswith("Model square is using the decoupled. The current BLS request "
              "call doesn't support models using the decoupled transaction "
              "policy. "
              "Please use 'decoupled=True' argument to the 'exec' or "
              "'async_exec' calls for decoupled models.'")


@differs("2.51 has no such method")
def test_cancelled_responses(server):
    assert ask(server, """
responses = pb.InferenceRequest(
    model_name="square", requested_output_names=["OUT"],
    inputs=[pb.Tensor("IN", np.array([3], np.int32))]).exec(decoupled=True)
first = next(responses)
responses.cancel()
for _ in responses:
    pass
responses.cancel()
result = first.has_error()
""") is False


# the first response of the second shows that the first one is released
TWO_STREAMS = """
streams = [pb.InferenceRequest(
    request_id=name, model_name="until_cancelled",
    requested_output_names=["OUT"],
    inputs=[pb.Tensor("IN", np.array([b"x"], dtype=object))]).exec(
        decoupled=True) for name in ("one", "two")]
for stream in streams:
    next(stream)
"""


@differs("2.51 cancels nothing that its callee has released")
def test_a_cancel_after_the_callee_s_execute(server):
    assert ask(server, TWO_STREAMS + """
streams[0].cancel()
result = next(streams[0]).output_tensors()[0].as_numpy()[0].decode()
""") == "true"


@differs("2.51 cancels nothing that its callee has released")
def test_responses_that_nobody_wants_any_more_are_cancelled(server):
    ask(server, TWO_STREAMS + "del streams, stream\n")
    server.wait_log("t one is cancelled")


def test_what_failed_calls_say(server):
    told_ = ask(server, CALL + """
result = {}
r = call([1], [2], model="absent").exec()
result["absent"] = [r.has_error(), r.error().message(), r.output_tensors()]
r = call([-99], [2]).exec()
result["refused"] = r.error().message()
r = pb.InferenceRequest(model_name="add_sub", requested_output_names=["SUM"],
    inputs=[pb.Tensor("A", np.zeros(1, np.float32))]).exec()
result["inputs"] = r.error().message()
r = pb.InferenceRequest(model_name="add_sub", requested_output_names=["SUM"],
    inputs=[pb.Tensor("A", np.zeros(1, np.int32)),
            pb.Tensor("B", np.zeros(1, np.float32))]).exec()
result["type"] = r.error().message()
r = call([1], [2], names=["NO_SUCH"]).exec()
result["name"] = r.error().message()
r = call([1], [2], model_version=7).exec()
result["version"] = r.error().message()
result["right"] = got(call([1], [2], model_version=1).exec(), "SUM")
""")
    assert told_["absent"][0] is True and told_["absent"][2] == []
    assert told_["absent"][1].startswith(
        "Model absent - Error when running inference: ")
    assert "'absent'" in told_["absent"][1]
    for key in ("inputs", "type", "name", "version"):
        assert told_[key].startswith(
            "Model add_sub - Error when running inference: ")
    assert told_["refused"] == "not with these"
    assert "expected 2 inputs but got 1 inputs for model 'add_sub'" \
        in told_["inputs"]
    assert "'A'" in told_["type"]
    assert "NO_SUCH" in told_["name"]
    assert "'add_sub'" in told_["version"]
    assert told_["right"] == [3]


@differs("2.51 asks our core first, whose error it passes on")
def test_a_call_of_a_model_that_does_not_serve(server):
    told_ = ask(server, CALL + """
result = [call([1], [2], **which).exec().error().message()
          for which in ({"model": "absent"}, {"model_version": 7})]
""")
    for name, text in zip(("absent", "add_sub"), told_):
        assert text.startswith(
            f"Model {name} - Error when running inference: Failed for execute "
            f"the inference request. Model '{name}' is not ready."), text


@differs("waits for ever there")
@pytest.mark.parametrize("call", ["exec()", "async_exec()"])
def test_a_client_s_request_is_not_for_another_model(server, call):
    assert raised(server, f"request.{call}") == (
        "TritonModelException", "a request of a client is not for another "
        "model: make an InferenceRequest")


@differs("every code is INTERNAL there")
def test_codes_of_failed_calls(server):
    assert ask(server, CALL + """
result = [int(call([-99], [2]).exec().error().code()),
          int(call([1], [2], model="absent").exec().error().code())]
""") == [4, 2]


@pytest.mark.parametrize("key", [7, "seven"])
def test_sequences(server, key):
    assert ask(server, f"""
import json
result = []
for n, flags in [(10, 1), (1, 0), (2, 0), (3, 2)]:
    r = pb.InferenceRequest(
        model_name="total", requested_output_names=["OUT"],
        inputs=[pb.Tensor("IN", np.array([n], np.int32))],
        correlation_id={key!r}, flags=flags).exec()
    assert not r.has_error(), r.error().message()
    result.append(json.loads(pb.get_output_tensor_by_name(
        r, "OUT").as_numpy().ravel()[0]))
""") == [[str(key), 10, 1], [str(key), 11, 0], [str(key), 13, 0],
         [str(key), 16, 2]]


def test_empty_and_large_tensors(server):
    assert ask(server, """
result = []
for shape in [(1, 0), (0, 0), (1024, 2560)]:
    a = np.ones(shape, np.float32)
    r = pb.InferenceRequest(
        model_name="copy", requested_output_names=["OUT"],
        inputs=[pb.Tensor("IN", a)]).exec()
    b = pb.get_output_tensor_by_name(r, "OUT").as_numpy()
    result.append([list(b.shape), bool(np.array_equal(a, b))])
""") == [[[1, 0], True], [[0, 0], True], [[1024, 2560], True]]


def test_calls_from_threads(server):
    assert ask(server, CALL + """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as pool:
    result = list(pool.map(
        lambda n: got(call([n], [1]).exec(), "SUM")[0], range(40)))
""") == [n + 1 for n in range(40)]


def test_calls_of_models_that_call(server):
    assert ask(server, f"""
import json
r = pb.InferenceRequest(
    model_name="caller", requested_output_names=["OUT"],
    inputs=[pb.Tensor("CODE", np.array([{CALL!r}
        + "result = got(call([1], [2]).exec(), 'SUM')"], dtype=object))],
    ).exec()
result = json.loads(pb.get_output_tensor_by_name(r, "OUT").as_numpy()[0])
""") == {"result": [3]}


def test_no_calls_outside_execute(server):
    assert told(server.infer("early", text("x"))) \
        == "BLS is only supported during the 'execute' function."


def test_async_needs_a_loop(server):
    assert raised(server, CALL + "call([1], [2]).async_exec()")[0] in (
        "RuntimeError", "TritonModelException")


def test_memory_is_given_back(server):
    before, after = ask(server, """
import gc
import c_python_backend_utils as c
def call():
    r = pb.InferenceRequest(
        model_name="copy", requested_output_names=["OUT"],
        inputs=[pb.Tensor("IN", np.ones((1, 1 << 18), np.float32))]).exec()
    return pb.get_output_tensor_by_name(r, "OUT").as_numpy()[0, 0]
call()
gc.collect()
before = c.shared_memory.free_memory()
for _ in range(30):
    assert call() == 1
gc.collect()
import time
for _ in range(100):
    if c.shared_memory.free_memory() >= before:
        break
    time.sleep(0.01)
result = [before, c.shared_memory.free_memory()]
""")
    assert after >= before


@differs("free memory is that of its region there")
def test_a_failed_call_leaves_no_memory(server):
    assert ask(server, CALL + """
import gc
import c_python_backend_utils as c
def fail():
    r = call(np.zeros(1 << 18), [2], names=["NO_SUCH"]).exec()
    assert r.has_error()
fail()
gc.collect()
before = c.shared_memory.free_memory()
for _ in range(20):
    fail()
gc.collect()
result = before - c.shared_memory.free_memory() < 1 << 20
""") is True


def test_json_of_parameters(server):
    """Of a request of one's own, before it is sent."""
    assert json.loads(ask(server, CALL + """
result = call([1], [2], parameters={"a": 1, "b": True, "c": "x"}).parameters()
""")) == {"a": 1, "b": True, "c": "x"}


@pytest.mark.parametrize("number,taken", [
    (2**63 - 1, True), (-2**63, True), (2**63, False), (2**64, False),
    (2**70, False), (-2**63 - 1, False)])
def test_parameters_of_more_than_64_bits(server, number, taken):
    """They fail the call, not the model that makes it."""
    error = ask(server, CALL + f"""
r = call([1], [2], parameters={{"a": {number}}}).exec()
result = r.error().message() if r.has_error() else None
""")
    assert taken if error is None else not taken and error.endswith(
        "Error when running inference: Unsupported value type on parameters")
