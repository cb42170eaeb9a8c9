"""Children that a model makes: what they ask of the server is an exception
there, at once, and their parent goes on as before."""

import pytest

from lib import decoupled, models, process, python_backend
from lib.python_backend import ECHO, TELL, TEXT, ask, text, told
from lib.server import SLOW

NO_CHANNEL = "this process has no channel to the server: a child that a " \
    "model has made cannot call it"

# in_child(do): what do() gives in a child made by fork, or raises there
CHILD = """
import multiprocessing
fork = multiprocessing.get_context("fork")

def in_child(do):
    here, there = fork.Pipe(False)
    def run():
        try:
            there.send(["gave", repr(do())])
        except Exception as e:
            there.send([type(e).__name__, str(e)])
    child = fork.Process(target=run)
    child.start()
    said = here.recv() if here.poll(30) else ["hangs", ""]
    child.kill()
    child.join()
    return said

def call(*words, model="echo"):
    return pb.InferenceRequest(
        model_name=model, requested_output_names=["OUT"],
        inputs=[pb.Tensor("IN", np.array(words, dtype=object))])

def answered(response):
    assert not response.has_error(), response.error().message()
    return pb.get_output_tensor_by_name(response, "OUT").as_numpy().tolist()

def stream(count):
    return pb.InferenceRequest(
        model_name="square", requested_output_names=["OUT"],
        inputs=[pb.Tensor("IN", np.array([count], np.int32))]).exec(
            decoupled=True)
"""

CALLS = {
    "exec": "call(b'x').exec()",
    "exec, decoupled": "stream(2)",
    "async_exec": "asyncio.run(awaits())",
    "the next response": "next(responses)",
    "is_cancelled": "request.is_cancelled()",
    "is_model_ready": "pb.is_model_ready('echo')",
    "load_model": "pb.load_model('echo')",
    "unload_model": "pb.unload_model('echo')",
    "log": "pb.Logger.log_info('from a child')",
    "a family of metrics": "pb.MetricFamily('f', 'f', pb.MetricFamily.GAUGE)",
    "a metric": "family.Metric(labels={'a': 'b'})",
    "increment": "metric.increment(1)",
    "value": "metric.value()",
}

# a pool of children from the beginning, and one's own work in them
POOL = TELL + """
import multiprocessing

def work(word):
    return len(word)

def ask(word):
    try:
        pb.InferenceRequest(
            model_name="echo", requested_output_names=["OUT"],
            inputs=[pb.Tensor("IN", np.array([word], dtype=object))]).exec()
    except RuntimeError as e:
        return str(e)

class TritonPythonModel:
    def initialize(self, args):
        self.pool = multiprocessing.get_context("fork").Pool(2)
    def execute(self, requests):
        answers = []
        for r in requests:
            words = [w.decode() for w in pb.get_input_tensor_by_name(
                r, "IN").as_numpy()]
            answers.append(tell([self.pool.map(work, words),
                                 self.pool.map(ask, words)]))
        return answers
    def finalize(self):
        self.pool.terminate()
"""

# its children leave execute as their parent does
GOES_ON = TELL + """
import os

class TritonPythonModel:
    def execute(self, requests):
        child = os.fork()
        answers = [tell([os.getpid(), child]) for r in requests]
        if child != 0:
            os.waitpid(child, 0)
        return answers
"""

# a child of another sort: it imports what it needs
WORK = """
import triton_python_backend_utils as pb

def ask(to):
    try:
        to.send(["gave", pb.is_model_ready("echo")])
    except Exception as e:
        to.send([type(e).__name__, str(e)])
"""

# its sender is nearly always in use when it goes to a child
SENDS = TELL + CHILD + """
import threading

class TritonPythonModel:
    def execute(self, requests):
        for r in requests:
            threading.Thread(target=self.answer,
                             args=(r.get_response_sender(),)).start()
    def answer(self, sender):
        ended = threading.Event()
        def send():
            while not ended.is_set():
                sender.send(tell("more"))
        other = threading.Thread(target=send)
        other.start()
        said = []
        while len(said) < 10 and ["hangs", ""] not in said:
            said.append(in_child(lambda: sender.send(tell("child"))))
        ended.set()
        other.join()
        sender.send(tell(said), pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


def fill(repository):
    python_backend.probe(repository)
    python_backend.probe(repository, "other")
    python_backend.model(repository, "echo", TEXT, ECHO)
    python_backend.model(repository, "pool", TEXT, POOL)
    python_backend.model(repository, "goes_on", TEXT, GOES_ON)
    python_backend.model(repository, "sends", TEXT + "model_transaction_policy"
                         " { decoupled: true }\n", SENDS)
    python_backend.model(repository, "spawns", python_backend.CODE,
                         python_backend.PROBE, {"work.py": WORK})
    decoupled.square(repository)
    models.identity(repository, "copy", [("IN", "FP32", [-1, -1])])


@pytest.fixture(scope="module")
def server():
    with python_backend.serve(fill) as s:
        yield s


@pytest.mark.parametrize("name", CALLS)
def test_a_call_of_a_child_is_an_exception(server, name):
    child, after = ask(server, CHILD + f"""
import asyncio
async def awaits():
    return await call(b'x').async_exec()
responses = stream(3)
next(responses)
family = pb.MetricFamily("m", "m", pb.MetricFamily.COUNTER)
metric = family.Metric(labels={{"a": "a"}})
child = in_child(lambda: {CALLS[name]})
before = metric.value()
metric.increment(2)
result = [child, [answered(call("y").exec())[0].decode(),
                  sum(len(r.output_tensors()) for r in responses),
                  metric.value() - before, request.is_cancelled()]]
""")
    assert child == ["RuntimeError", NO_CHANNEL]
    assert after == ["y", 2, 2, False]


def test_a_child_may_drop_what_its_parent_has(server):
    """And may write to it: an input is memory of both."""
    assert ask(server, CHILD + """
import gc
given = np.ones((1, 1 << 18), np.float32)
def copied():
    return pb.get_output_tensor_by_name(pb.InferenceRequest(
        model_name="copy", requested_output_names=["OUT"],
        inputs=[pb.Tensor("IN", given)]).exec(), "OUT")
result = []
for n in range(10):
    output, responses = copied(), stream(4)
    array = output.as_numpy()
    next(responses)
    def drops():
        global output, array, responses
        total = float(array.sum())
        del output, array, responses
        gc.collect()
        return total
    said = in_child(drops)
    others = [copied() for _ in range(3)]
    result.append([said, float(array.sum()), sum(
        len(r.output_tensors()) for r in responses)])
""") == [[["gave", "262144.0"], 262144, 3]] * 10


def test_children_beside_threads_that_call(server):
    """Of each round a child that calls, too; no answer is another's."""
    assert ask(server, CHILD + """
import threading
from concurrent.futures import ThreadPoolExecutor
ended = threading.Event()
def calls(n):
    count = 0
    while not ended.is_set():
        word = f"{n} {count}".encode()
        assert answered(call(word).exec()) == [word]
        count += 1
    return count > 0
with ThreadPoolExecutor(4) as pool:
    threads = [pool.submit(calls, n) for n in range(4)]
    said = {tuple(in_child(lambda: call(b"x").exec())) for _ in range(40)}
    ended.set()
    result = [[list(s) for s in said], [t.result() for t in threads]]
""") == [[["RuntimeError", NO_CHANNEL]], [True] * 4]


def test_a_pool_of_children(server):
    for _ in range(3):
        lengths, errors = told(server.infer("pool", text("a", "bcd", "ef")))
        assert lengths == [1, 3, 2]
        assert errors == [NO_CHANNEL] * 3


def test_a_child_that_leaves_execute_ends(server):
    pids = [told(server.infer("goes_on", text("x"))) for _ in range(5)]
    assert len({parent for parent, _ in pids}) == 1
    for _, child in pids:
        assert process.wait_until(lambda: not process.alive(child), 5 * SLOW)


def test_a_child_that_is_another_program(server):
    said = ask(server, """
import importlib, multiprocessing
work = importlib.import_module("1.work")
context = multiprocessing.get_context("spawn")
here, there = context.Pipe(False)
child = context.Process(target=work.ask, args=(there,))
child.start()
result = here.recv() if here.poll(60) else "hangs"
child.kill()
child.join()
""", "spawns")
    assert said == ["RuntimeError", NO_CHANNEL]


def test_a_sender_that_is_in_use(server):
    said = ask(server, CHILD + """
import json
for response in call("x", model="sends").exec(decoupled=True):
    result = json.loads(answered(response)[0])
""")
    assert said == [["RuntimeError", NO_CHANNEL]] * 10
