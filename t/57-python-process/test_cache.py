"""A model that writes to all memory that it shares with the server changes
nothing of what the response cache keeps."""

import pytest

from lib import models, python_backend, wire
from lib.python_backend import told

SIZE = 1 << 20
ROUNDS = 30

IO = models.io_block("input", [("IN", "UINT8", [-1])]) \
    + models.io_block("output", [("OUT", "UINT8", [-1])])
NAMES = models.io_block("input", [("IN", "BYTES", [-1])]) \
    + models.io_block("output", [("OUT", "BYTES", [1])])

# asks another model, while a thread changes each piece of its response that
# comes into view in the memory of the channel
HOSTILE = python_backend.TELL + """
import mmap
import threading

HEAP = 1 << 20              # behind the header and its slots, and a little
PIECE = b"P" * 64

class TritonPythonModel:
    def initialize(self, args):
        self.memory = mmap.mmap(3, 64 << 20)
        self.asking = False
        self.changed = 0
        threading.Thread(target=self.change, daemon=True).start()
    def change(self):
        while True:
            at = self.memory.find(PIECE, 0) if self.asking else -1
            while at >= 0 and self.asking:
                self.memory[at:at + 8] = b"poisoned"
                self.changed += 1
                at = self.memory.find(PIECE, at)
    def execute(self, requests):
        return [self.answer(*pb.get_input_tensor_by_name(r, "IN")
                            .as_numpy()) for r in requests]
    def answer(self, model, number):
        given = np.full(%d, ord("P"), np.uint8)
        given[:8] = np.frombuffer(b"%%8d" %% int(number), np.uint8)
        self.asking = True
        got = pb.InferenceRequest(
            model_name=model.decode(), requested_output_names=["OUT"],
            inputs=[pb.Tensor("IN", given)]).exec()
        self.asking = False
        return tell([got.has_error(), self.changed])
""" % SIZE


def fill(repository):
    python_backend.model(repository, "hostile", NAMES, HOSTILE)
    models.identity(repository, "plain", [("IN", "UINT8", [-1])])
    models.identity(repository, "cached", [("IN", "UINT8", [-1])],
                    extra="response_cache { enable: true }\n")
    for name in "plain", "cached":
        models.ensemble(
            repository, f"{name}_inside", [("IN", "UINT8", [-1])],
            [("OUT", "UINT8", [-1])],
            models.step(name, {"IN": "IN"}, {"OUT": "OUT"}))


@pytest.fixture(scope="module")
def server():
    with python_backend.serve(
            fill, http="    inference_response_cache local size=256m;\n") \
            as s:
        yield s


def ask_hostile(server, model, number):
    """How many pieces it has changed so far."""
    failed, changed = told(server.infer("hostile", {"inputs": [wire.tensor(
        "IN", "BYTES", [2], [model, str(number)])]}))
    assert not failed
    return changed


@pytest.mark.parametrize("model", ["cached", "cached_inside"])
def test_a_cached_response_is_not_changed(server, model):
    for n in range(ROUNDS):
        n += 1000 * len(model)
        ask_hostile(server, model, n)
        data = b"%8d" % n + b"P" * (SIZE - 8)
        answer = server.infer(model, {
            "inputs": [wire.tensor("IN", "UINT8", [SIZE],
                                   binary_data_size=SIZE)],
            "outputs": [{"name": "OUT",
                         "parameters": {"binary_data": True}}]}, data)
        assert answer.status == 200
        assert answer.split()[1] == data


def test_the_model_does_what_it_is_feared_for(server):
    """Or the test above shows nothing."""
    assert any(ask_hostile(server, "plain", n) > 0 for n in range(ROUNDS))
