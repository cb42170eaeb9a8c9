"""Models of other shapes: several instances and versions, other file names,
files beside them, batches."""

import threading

import pytest

from lib import process, python_backend, wire
from lib.python_backend import TELL, TEXT, text, told
from lib.server import SLOW

WHO = TELL + """
import os

class TritonPythonModel:
    def initialize(self, args):
        self.args = args
    def execute(self, requests):
        return [tell({"name": self.args["model_instance_name"],
                      "kind": self.args["model_instance_kind"],
                      "version": self.args["model_version"],
                      "pid": os.getpid(), "file": os.path.basename(__file__),
                      "batch": len(requests)}) for r in requests]
"""

NEIGHBOURS = TELL + """
from . import near
import beside
import above
from .inner import deep

class TritonPythonModel:
    def execute(self, requests):
        return [tell([near.WORD, beside.WORD, above.WORD, deep.WORD,
                      __name__, pb.get_model_dir()]) for r in requests]
"""

SLOW_ONE = TELL + """
import time

class TritonPythonModel:
    def execute(self, requests):
        time.sleep(0.05)
        return [tell(len(requests)) for r in requests]
"""


# how often it has run, and with which words
COUNT = TELL + """
class TritonPythonModel:
    def initialize(self, args):
        self.seen = []
    def execute(self, requests):
        self.seen += [pb.get_input_tensor_by_name(r, "IN").as_numpy()
                      .ravel()[0].decode() for r in requests]
        return [tell(self.seen) for r in requests]
"""
WARM = """model_warmup { name: "one" batch_size: 1 count: 2
    inputs { key: "IN" value { data_type: TYPE_STRING dims: [ 1 ]
                               zero_data: true } } }
"""

# none of the four is loaded before all are being loaded
TOGETHER = TELL + """
import pathlib, time

class TritonPythonModel:
    def initialize(self, args):
        place = pathlib.Path(args["model_repository"])
        (place / (args["model_instance_name"] + ".begun")).touch()
        end = time.monotonic() + 20
        while len(list(place.glob("*.begun"))) < 4:
            if time.monotonic() > end:
                raise RuntimeError("one after the other")
            time.sleep(0.01)
    def execute(self, requests):
        return [tell("here") for r in requests]
"""

# what the sequence batcher says of each request
SEQUENCE = TELL + """
class TritonPythonModel:
    def execute(self, requests):
        return [tell([bool(pb.get_input_tensor_by_name(r, n).as_numpy()
                           .ravel()[0]) for n in ("START", "END")]
                     + [int(pb.get_input_tensor_by_name(r, "CORRID").as_numpy()
                            .ravel()[0])]) for r in requests]
"""
SEQUENCE_CONFIG = "max_batch_size: 2\nsequence_batching {\n" + "".join(
    f'control_input {{ name: "{name}" control {{ kind: {kind} {how} }} }}\n'
    for name, kind, how in [
        ("START", "CONTROL_SEQUENCE_START", "fp32_false_true: [ 0, 1 ]"),
        ("END", "CONTROL_SEQUENCE_END", "fp32_false_true: [ 0, 1 ]"),
        ("CORRID", "CONTROL_SEQUENCE_CORRID", "data_type: TYPE_UINT64")]) \
    + "}\n"


def fill(repository):
    group = "instance_group {{ count: {} kind: KIND_{} }}\n"
    model = python_backend.model
    model(repository, "four", TEXT + group.format(4, "CPU"), WHO)
    model(repository, "together", TEXT + group.format(4, "CPU"), TOGETHER)
    (repository / "together").chmod(0o777)
    model(repository, "whatever", TEXT + group.format(1, "MODEL"), WHO)
    model(repository, "versions", TEXT
          + "version_policy { all { } }\n", WHO)
    (repository / "versions/5").mkdir()
    (repository / "versions/5/model.py").write_text(WHO)
    model(repository, "renamed",
          'default_model_filename: "other_name.py"\n' + TEXT,
          "raise RuntimeError('not this file')\n", {"other_name.py": WHO})
    model(repository, "below",
          'default_model_filename: "some/where/other_name.py"\n' + TEXT,
          "raise RuntimeError('not this file')\n",
          {"some/where/other_name.py": WHO})
    model(repository, "neighbours", TEXT, NEIGHBOURS,
          {"near.py": "WORD = 1\n", "beside.py": "WORD = 2\n",
           "inner/__init__.py": "", "inner/deep.py": "WORD = 4\n"},
          top={"above.py": "WORD = 3\n"})
    model(repository, "warm", TEXT + WARM, COUNT)
    model(repository, "cached", TEXT + "response_cache { enable: true }\n",
          COUNT)
    model(repository, "sequence", SEQUENCE_CONFIG + TEXT, SEQUENCE)
    model(repository, "batches", "max_batch_size: 4\ndynamic_batching {"
          " max_queue_delay_microseconds: 100000 }\n" + TEXT, SLOW_ONE)


@pytest.fixture(scope="module")
def server():
    with python_backend.serve(
            fill, http="    inference_response_cache local size=1m;\n",
            parts="health metadata config infer statistics") as s:
        yield s


def many(server, model, count, body):
    """The answers of clients that ask at the same time."""
    said = []
    threads = [threading.Thread(
        target=lambda: said.append(told(server.infer(model, body))))
        for _ in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(30 * SLOW)
    return said


def test_instances(server):
    said = []
    for _ in range(500):
        said += many(server, "four", 8, text("x"))
        if len({s["pid"] for s in said}) == 4:
            break
    assert {s["name"] for s in said} in (
        {f"four_0_{n}" for n in range(4)}, {f"four_{n}" for n in range(4)})
    assert len({s["pid"] for s in said}) == 4
    assert {s["kind"] for s in said} == {"CPU"}


def test_instances_load_together(server):
    assert told(server.infer("together", text("x"))) == "here"


def test_kind_model(server):
    assert told(server.infer("whatever", text("x")))["kind"] == "MODEL"


@pytest.mark.parametrize("version", ["1", "5"])
def test_versions(server, version):
    said = told(server.infer("versions", text("x"), version=version))
    assert said["version"] == version


@pytest.mark.parametrize("name", ["renamed", "below"])
def test_another_file_name(server, name):
    assert told(server.infer(name, text("x")))["file"] == "other_name.py"


def test_neighbours(server):
    said = told(server.infer("neighbours", text("x")))
    assert said == [1, 2, 3, 4, "1.model",
                    str(server.models / "neighbours/1")]


def test_batches(server):
    body = {"inputs": [wire.tensor("IN", "BYTES", [1, 1], ["x"])]}
    said = many(server, "batches", 8, body)
    assert len(said) == 8
    assert max(said) > 1 and max(said) <= 4


def test_statistics(server):
    body = {"inputs": [wire.tensor("IN", "BYTES", [3, 1], ["x"] * 3)]}
    before = statistics(server)
    assert told(server.infer("batches", body)) == 1
    assert process.wait_until(
        lambda: statistics(server)["inference_count"]
        == before["inference_count"] + 3, 5 * SLOW)
    after = statistics(server)
    assert after["execution_count"] == before["execution_count"] + 1
    assert after["inference_stats"]["success"]["count"] \
        == before["inference_stats"]["success"]["count"] + 1
    assert after["inference_stats"]["compute_infer"]["ns"] \
        >= before["inference_stats"]["compute_infer"]["ns"] + 50000000
    assert 3 in [b["batch_size"] for b in after["batch_stats"]]
    assert all(b[part]["ns"] > 0 for b in after["batch_stats"] for part in (
        "compute_input", "compute_infer", "compute_output"))


def statistics(server):
    return server.get("/v2/models/batches/stats").json()["model_stats"][0]


def test_warm_up(server):
    seen = told(server.infer("warm", text("first")))
    assert seen == ["", "", "first"]


def test_cached_responses(server):
    assert told(server.infer("cached", text("a"))) == ["a"]
    assert process.wait_until(
        lambda: told(server.infer("cached", text("a"))) == ["a"], 5 * SLOW)
    assert told(server.infer("cached", text("b")))[-1] == "b"


def test_sequences(server):
    for key in (5, 6):
        for start, end in [(True, False), (False, False), (False, True)]:
            answer = server.infer("sequence", {
                "inputs": [wire.tensor("IN", "BYTES", [1, 1], ["x"])],
                "parameters": {"sequence_id": key, "sequence_start": start,
                               "sequence_end": end}})
            assert told(answer) == [start, end, key]
