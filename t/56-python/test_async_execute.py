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


def fill(repository):
    python_backend.model(repository, "simple", TEXT, SIMPLE)
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


def test_batches_begin_while_others_wait(server):
    with Stream(server.port2) as stream:
        for word in ("wait", "wait", "wait", "go"):
            stream.send("meet", given(word), id=word)
        answers = stream.wait(4)
    assert [e for _, e in answers] == [None] * 4
    got = [json.loads(r.as_numpy("OUT")[0]) for r, _ in answers]
    assert got[0] == ["go", 3]
    assert [w for w, _ in got[1:]] == ["wait"] * 3


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
