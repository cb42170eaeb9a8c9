"""Models of other shapes: several instances and versions, other file names,
files beside them, batches."""

import threading

import pytest

from lib import python_backend, wire
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


def fill(repository):
    group = "instance_group {{ count: {} kind: KIND_{} }}\n"
    model = python_backend.model
    model(repository, "four", TEXT + group.format(4, "CPU"), WHO)
    model(repository, "whatever", TEXT + group.format(1, "MODEL"), WHO)
    model(repository, "versions", TEXT
          + "version_policy { all { } }\n", WHO)
    (repository / "versions/5").mkdir()
    (repository / "versions/5/model.py").write_text(WHO)
    model(repository, "renamed",
          'default_model_filename: "other_name.py"\n' + TEXT,
          "raise RuntimeError('not this file')\n", {"other_name.py": WHO})
    model(repository, "neighbours", TEXT, NEIGHBOURS,
          {"near.py": "WORD = 1\n", "beside.py": "WORD = 2\n",
           "inner/__init__.py": "", "inner/deep.py": "WORD = 4\n"},
          top={"above.py": "WORD = 3\n"})
    model(repository, "batches", "max_batch_size: 4\ndynamic_batching {"
          " max_queue_delay_microseconds: 100000 }\n" + TEXT, SLOW_ONE)


@pytest.fixture(scope="module")
def server():
    with python_backend.serve(fill) as s:
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
    for _ in range(20):
        said += many(server, "four", 8, text("x"))
        if len({s["pid"] for s in said}) == 4:
            break
    assert {s["name"] for s in said} in (
        {f"four_0_{n}" for n in range(4)}, {f"four_{n}" for n in range(4)})
    assert len({s["pid"] for s in said}) == 4
    assert {s["kind"] for s in said} == {"CPU"}


def test_kind_model(server):
    assert told(server.infer("whatever", text("x")))["kind"] == "MODEL"


@pytest.mark.parametrize("version", ["1", "5"])
def test_versions(server, version):
    said = told(server.infer("versions", text("x"), version=version))
    assert said["version"] == version


def test_another_file_name(server):
    assert told(server.infer("renamed", text("x")))["file"] \
        == "other_name.py"


def test_neighbours(server):
    said = told(server.infer("neighbours", text("x")))
    assert said == [1, 2, 3, 4, "1.model",
                    str(server.models / "neighbours/1")]


def test_batches(server):
    body = {"inputs": [wire.tensor("IN", "BYTES", [1, 1], ["x"])]}
    said = many(server, "batches", 8, body)
    assert len(said) == 8
    assert max(said) > 1 and max(said) <= 4
