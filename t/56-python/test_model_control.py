"""Models that load, unload and ask for other models."""

import pytest

from lib import models, python_backend
from lib.python_backend import ask, differs, raised

INT = [("IN", "INT32", [-1])]
OUR_REASON = "2.51 takes our core's reason for an exception"


def fill(repository):
    python_backend.probe(repository)
    models.identity(repository, "other", INT, versions=(1, 3))
    models.identity(repository, "third", INT)
    models.write_model(repository, "bad", 'backend: "no_such"\n'
                       + models.io_block("input", INT))


@pytest.fixture(scope="module")
def server():
    with python_backend.serve(
            fill, parts="health metadata config infer repository",
            http="    inference_model_control explicit;\n"
                 "    inference_load_model probe;\n") as s:
        yield s


def ready(server, model):
    return server.get(f"/v2/models/{model}/ready").status == 200


@differs(OUR_REASON)
def test_load_and_unload(server):
    assert not ready(server, "other")
    assert ask(server, """
result = [pb.is_model_ready("other")]
pb.load_model(model_name="other")
result.append(pb.is_model_ready(model_name="other"))
result.append(pb.is_model_ready("other", "3"))
result.append(pb.is_model_ready("other", model_version="9"))
""") == [False, True, True, False]
    assert ready(server, "other")
    assert ask(server, """
import time
pb.unload_model("other")
for _ in range(500):
    if not pb.is_model_ready("other"):
        break
    time.sleep(0.01)
result = pb.is_model_ready("other")
""") is False
    assert not ready(server, "other")


def test_load_with_a_configuration(server):
    assert ask(server, """
import json
config = json.dumps({"backend": "identity", "max_batch_size": 7,
    "input": [{"name": "IN", "data_type": "TYPE_INT32", "dims": [-1]}],
    "output": [{"name": "OUT", "data_type": "TYPE_INT32", "dims": [-1]}]})
pb.load_model(model_name="third", config=config)
result = pb.is_model_ready("third")
""") is True
    assert server.get("/v2/models/third/config").json()["max_batch_size"] == 7


def test_load_with_files(server):
    assert ask(server, """
import json
config = json.dumps({"backend": "identity",
    "input": [{"name": "IN", "data_type": "TYPE_INT32", "dims": [-1]}],
    "output": [{"name": "OUT", "data_type": "TYPE_INT32", "dims": [-1]}]})
pb.load_model(model_name="made", config=config,
              files={"file:1/data.bin": b"\\0\\1"})
result = pb.is_model_ready("made")
""") is True
    assert ready(server, "made")


def test_unload_with_dependents(server):
    ask(server, "pb.load_model('third')\n"
                "pb.unload_model('third', unload_dependents=True)")
    ask(server, "pb.load_model('third')\npb.unload_model('third', np.True_)")


def test_it_may_load_while_others_ask(server):
    assert ask(server, """
import threading
def load(n):
    pb.load_model(model_name="other" if n % 2 else "third")
threads = [threading.Thread(target=load, args=(n,)) for n in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
result = [pb.is_model_ready("other"), pb.is_model_ready("third")]
""") == [True, True]


@differs(OUR_REASON)
def test_one_that_does_not_serve_is_not_ready(server):
    """Not there, never loaded, or its load has failed."""
    assert server.post("/v2/repository/models/bad/load", b"").status == 400
    assert ask(server, "result = [pb.is_model_ready(n) "
                       "for n in ('absent', 'bad', '')]") == [False] * 3


@pytest.mark.parametrize("call,why", [
    ("load_model(model_name='absent')", "Failed to load model: Failed to "
     "process the request for model 'probe_0', message: "),
    ("load_model(model_name='bad')", "bad"),
    ("load_model(model_name='other', config='{')", ""),
    ("load_model(model_name='other', files=[])", "failed to load model "
     "'other', files should be a dictionary of file paths and file contents"),
])
@differs("the stub dies of its own exception there")
def test_refusals(server, call, why):
    name, said = raised(server, "pb." + call)
    assert name == "TritonModelException"
    assert why in said


@differs("the stub dies of its own exception there")
@pytest.mark.parametrize("version", ["one", "-3"])
def test_what_is_no_version(server, version):
    assert raised(server, f"pb.is_model_ready('other', '{version}')") == (
        "TritonModelException", "Failed to check model readiness: Failed to "
        "process the request for model 'probe_0', message: failed to "
        f"get model version from specified version string '{version}', "
        "version should be an integral value > 0")


@pytest.mark.parametrize("call", [
    "load_model(None)", "load_model()", "unload_model(None)",
    "is_model_ready(None)", "is_model_ready('other', 1)",
    "load_model('other', config=1)"])
def test_wrong_arguments(server, call):
    assert raised(server, "pb." + call)[0] == "TypeError"


@differs("the stub dies of its own exception there")
def test_without_explicit_control(make_server):
    s = python_backend.serve(python_backend.probe)
    with s.start():
        name, said = raised(s, "pb.load_model('probe')")
        assert name == "TritonModelException"
        assert "explicit" in said.lower() or "not allowed" in said.lower()
        assert ask(s, "result = pb.is_model_ready('probe')") is True
