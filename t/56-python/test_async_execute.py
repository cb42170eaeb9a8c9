"""async def execute: the loop of an instance, awaiting, and batches that begin
while others wait."""

import json
import threading

import numpy as np
import pytest
import tritonclient.grpc as grpcclient

from lib import python_backend
from lib.front_end import Stream
from lib.python_backend import TELL, TEXT, differs, text, told, words

SIMPLE = TELL + """
import asyncio

class TritonPythonModel:
    async def execute(self, requests):
        await asyncio.sleep(0)
        answers = await asyncio.gather(*[self.one(r) for r in requests])
        return list(answers)
    async def one(self, request):
        word = pb.get_input_tensor_by_name(request, "IN").as_numpy()[0]
        await asyncio.sleep(0.001)
        if word == b"raise":
            raise ValueError("awaited in vain")
        return tell(word.decode())
"""

# without the collector of cycles; how many inputs of earlier requests are left
LEFT = TELL + """
import gc, weakref

class TritonPythonModel:
    def initialize(self, args):
        gc.disable()
        self.seen = []
    async def execute(self, requests):
        (request,) = requests
        left = sum(r() is not None for r in self.seen)
        tensor = pb.get_input_tensor_by_name(request, "IN").as_numpy()
        self.seen.append(weakref.ref(tensor))
        if tensor[0] == b"raise":
            raise ValueError("awaited in vain")
        return [tell(left)]
"""

# a task that outlives execute answers
LATER = TELL + """
import asyncio

class TritonPythonModel:
    def initialize(self, args):
        self.tasks = set()
    async def execute(self, requests):
        for r in requests:
            word = pb.get_input_tensor_by_name(r, "IN").as_numpy()[0]
            if word == b"exit":
                raise SystemExit("from a coroutine")
            task = asyncio.create_task(
                self.later(word.decode(), r.get_response_sender()))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
        return None
    async def later(self, word, sender):
        await asyncio.sleep(0.2)
        sender.send(tell(word), 1)
        if word == "leave":
            raise SystemExit("from a task")
"""

# each execution leaves a task that ends the loop, and closes it
CLOSED = TELL + """
import asyncio
import time

class Close(SystemExit):
    def __str__(self):
        self.args[0].close()
        return "closed"

class TritonPythonModel:
    def initialize(self, args):
        self.task = None
    def execute(self, requests):
        while self.task is not None and not self.task.get_loop().is_closed():
            time.sleep(0.01)
        return self.answer(requests[0].get_response_sender())
    async def answer(self, sender):
        self.task = asyncio.create_task(self.close(sender))
    async def close(self, sender):
        await asyncio.sleep(0.05)
        sender.send(tell("closed"), 1)
        raise Close(asyncio.get_running_loop())
"""

# a request "wait" is answered when "go" has come
MEET = TELL + """
import asyncio

class TritonPythonModel:
    def initialize(self, args):
        self.gone = None
        self.waiting = 0
    async def execute(self, requests):
        if self.gone is None:
            self.gone = asyncio.Event()
        for r in requests:
            word = pb.get_input_tensor_by_name(r, "IN").as_numpy()[0]
            sender = r.get_response_sender()
            if word == b"raise":
                raise ValueError("in the background")
            if word == b"wait":
                self.waiting += 1
                await self.gone.wait()
            if word == b"go":
                self.gone.set()
            sender.send(tell([word.decode(), self.waiting]), 1)
        return None
"""

# asks meet, and iterates its responses while the loop waits
THROUGH = TELL + """
class TritonPythonModel:
    async def execute(self, requests):
        for r in requests:
            call = pb.InferenceRequest(model_name="meet", inputs=r.inputs(),
                                       requested_output_names=["OUT"])
            for answer in await call.async_exec(decoupled=True):
                if answer.output_tensors():
                    r.get_response_sender().send(answer)
            r.get_response_sender().send(flags=1)
        return None
"""


def fill(repository):
    python_backend.model(repository, "simple", TEXT, SIMPLE)
    python_backend.model(repository, "left", TEXT, LEFT)
    python_backend.model(repository, "later", TEXT, LATER)
    python_backend.model(repository, "closed", TEXT, CLOSED)
    python_backend.model(
        repository, "through", TEXT
        + "model_transaction_policy { decoupled: true }\n", THROUGH)
    python_backend.model(
        repository, "meet", TEXT
        + "model_transaction_policy { decoupled: true }\n", MEET)


@pytest.fixture(scope="module")
def server():
    with python_backend.serve(fill) as s:
        yield s


def given(word):
    tensor = grpcclient.InferInput("IN", [1], "BYTES")
    tensor.set_data_from_numpy(np.array([word.encode()], dtype=object))
    return [tensor]


def test_it_is_awaited(server):
    for n in range(5):
        assert told(server.infer("simple", text(f"w{n}"))) == f"w{n}"


def test_from_several_clients(server):
    got = []

    def client(n):
        got.append((n, told(server.infer("simple", text(str(n))))))

    threads = [threading.Thread(target=client, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(got) == [(n, str(n)) for n in range(8)]


def test_an_exception(server):
    answer = server.infer("simple", text("raise"))
    assert answer.status == 500
    assert "ValueError: awaited in vain" in answer.error
    assert told(server.infer("simple", text("x"))) == "x"


def test_an_exception_keeps_no_inputs(server):
    for _ in range(3):
        assert server.infer("left", text("raise")).status == 500
    assert told(server.infer("left", text("x"))) == 0


def test_a_task_outlives_execute(server):
    for word in ("one", "two"):
        assert told(server.infer("later", text(word))) == word


@differs("the loop has ended there, and the next request waits for ever")
def test_a_task_that_exits_leaves_the_loop(server):
    assert "SystemExit: from a coroutine" in server.infer(
        "later", text("exit")).error
    assert told(server.infer("later", text("leave"))) == "leave"
    server.wait_log("SystemExit: from a task")
    assert told(server.infer("later", text("next"))) == "next"


@differs("the next request waits for ever there")
def test_a_loop_that_the_model_closes_is_replaced(server):
    before = len(server.log_text())
    for _ in range(3):
        assert told(server.infer("closed", text("x"))) == "closed"
    assert server.log_text()[before:].count("Event loop is closed") == 0


def test_batches_begin_while_others_wait(server):
    with Stream(server.port2) as stream:
        for word in ("wait", "wait", "wait", "go"):
            stream.send("meet", given(word), id=word)
        answers = stream.wait(4)
    assert [e for _, e in answers] == [None] * 4
    got = [json.loads(r.as_numpy("OUT")[0]) for r, _ in answers]
    assert got[0] == ["go", 3]
    assert [w for w, _ in got[1:]] == ["wait"] * 3


def test_calls_of_decoupled_models_are_awaited_until_a_response(server):
    with Stream(server.port2) as stream:
        for word in ("wait", "wait", "go"):
            stream.send("through", given(word), id=word)
        answers = stream.wait(3)
    assert [e for _, e in answers] == [None] * 3
    got = [json.loads(r.as_numpy("OUT")[0])[0] for r, _ in answers]
    assert sorted(got) == ["go", "wait", "wait"]


@differs("the request is never answered there")
def test_an_exception_in_the_background(server):
    with Stream(server.port2) as stream:
        stream.send("meet", given("raise"))
        ((_, error),) = stream.wait(1)
    assert "ValueError: in the background" in str(error)
    with Stream(server.port2) as stream:
        stream.send("meet", given("go"))
        ((result, error),) = stream.wait(1)
    assert error is None and result is not None


def test_the_model_is_ready_after_all(server):
    assert server.get("/v2/models/simple/ready").status == 200
    assert words(server.infer("simple", text("x"))) == ['"x"']
