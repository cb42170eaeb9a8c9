"""A model's life: what it is told, its errors, its exceptions, what it returns
that is wrong, why it does not load, how it ends."""

import os
import re
import sys
import threading

import pytest
import tritonclient.grpc as grpcclient
from tritonclient.utils import InferenceServerException

from lib import models, process, python_backend
from lib.front_end import Stream
from lib.python_backend import (ECHO, PREBUILT, TELL, TEXT, differs, text,
                                told, words)
from lib.repository import ask, index, rows
from lib.server import SLOW

ARGUMENTS = TELL + """
class TritonPythonModel:
    def initialize(self, args):
        self.args = args
    def execute(self, requests):
        return [tell(self.args) for r in requests]
"""

CODES = """\
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for r in requests:
            word = pb.get_input_tensor_by_name(r, "IN").as_numpy()[0].decode()
            answers.append(pb.InferenceResponse(error=pb.TritonError(
                "as told", getattr(pb.TritonError, word))
                if word else pb.TritonError("as told")))
        return answers
"""

# by the word: what execute gives back
RETURNS = """\
import os
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        word = pb.get_input_tensor_by_name(
            requests[0], "IN").as_numpy()[0].decode()
        good = [pb.InferenceResponse([pb.Tensor(
            "OUT", pb.get_input_tensor_by_name(r, "IN").as_numpy())])
            for r in requests]
        if word == "none":
            return None
        if word == "nones":
            return [None] * len(requests)
        if word == "strings":
            return ["x"] * len(requests)
        if word == "tuple":
            return tuple(good)
        if word == "more":
            return good + good
        if word == "empty":
            return []
        if word == "raise":
            self.fail(word)
        if word == "exit":
            raise SystemExit(3)
        if word == "unknown":
            return [pb.InferenceResponse([pb.Tensor(
                "NO_SUCH", pb.get_input_tensor_by_name(r, "IN").as_numpy())])
                for r in requests]
        return good
    def fail(self, word):
        raise ValueError("never works: " + word)
"""

# an error for the first request of each batch
PARTLY = """\
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse(error=pb.TritonError("not this one"))
                if pb.get_input_tensor_by_name(r, "IN").as_numpy()[0, 0]
                == b"bad" else pb.InferenceResponse([pb.Tensor("OUT",
                pb.get_input_tensor_by_name(r, "IN").as_numpy())])
                for r in requests]
"""

# waits until it is cancelled, and says when it was
CANCEL = """\
import pathlib
import time
import numpy
import triton_python_backend_utils as pb

class TritonPythonModel:
    def initialize(self, args):
        self.place = pathlib.Path(args["model_repository"])
    def execute(self, requests):
        answers = []
        for r in requests:
            before = r.is_cancelled()
            (self.place / "runs").touch()
            for _ in range(1000):
                if r.is_cancelled():
                    break
                time.sleep(0.01)
            (self.place / "after").write_text(f"{before} {r.is_cancelled()}")
            answers.append(pb.InferenceResponse(error=pb.TritonError(
                "cancelled", pb.TritonError.CANCELLED)))
        return answers
"""

END = ECHO + """
    def initialize(self, args):
        import pathlib
        self.place = pathlib.Path(args["model_repository"])
    def finalize(self):
        (self.place / "finalized").touch()
        raise RuntimeError("no good end")
"""

COMPLETE = ECHO + """
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "IN", "data_type": "TYPE_STRING",
                          "dims": [-1]})
        config.add_output({"name": "OUT", "data_type": "TYPE_STRING",
                           "dims": [-1]})
        config.set_max_batch_size(4)
        config.set_dynamic_batching()
        import sys
        sys.modules["left_over"] = config
        return config
    def initialize(self, args):
        import sys
        assert "left_over" not in sys.modules
"""

BARE = """
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([]) for r in requests]
"""

# (why it does not load, its model.py)
BROKEN = {
    "syntax": ("class TritonPythonModel:\n    def execute(self requests):\n"
               "        pass\n"),
    "package": "import no_such_package_here\n" + ECHO,
    "no_class": "x = 1\n",
    "no_execute": "class TritonPythonModel:\n    pass\n",
    "at_import": "x = 1\n\n1 / 0\n",
    "initialize": ECHO + "    def initialize(self, args):\n"
                         "        raise RuntimeError('not today')\n",
    "constructor": ECHO + "    def __init__(self):\n"
                          "        raise RuntimeError('no room')\n",
    "leaves": ECHO + "    def initialize(self, args):\n"
                     "        import os\n        os._exit(9)\n",
    "nul": "x = 1\n\0\n" + ECHO,
    "argument": ECHO + "    def initialize(self):\n        pass\n",
    "file": "",
}
# what the reason says; * is what NVIDIA's does not tell: a place, and why its
# stub ends by SIGSEGV where there is no file
REASONS = {
    "syntax": ["SyntaxError: ", " (model.py, line 2)"],
    "package": ["ModuleNotFoundError: No module named 'no_such_package_here'",
                "model.py(1): <module>"],
    "no_class": ["TritonPythonModel"],
    "no_execute": ["*model.py does not implement `execute` method."],
    "at_import": ["division by zero", "model.py(3): <module>"],
    "initialize": ["not today", "model.py(9): initialize"],
    "constructor": ["no room", "model.py(9): __init__"],
    "leaves": ["Stub process 'b_leaves_0", " is not healthy.",
               "*exited with status 9"],
    "nul": ["source code string cannot contain null bytes", "*/1/model.py"],
    "argument": ["initialize() takes 1 positional argument but 2 were given",
                 "*/1/model.py"],
    "file": ["*model.py does not exist in the model repository path: /",
             "*b_file/1/model.py"],
}

COMPLETES_WRONG = {
    "c_returns": ("return None", "must return a valid pb.ModelConfig object"),
    "c_raises": ("raise RuntimeError('cannot complete')", "cannot complete"),
    "c_batch": ("config.set_max_batch_size(2); return config",
                "configuration specified max_batch_size 4, but in "
                "auto-complete-config function for model 'c_batch' specified "
                "max_batch_size 2"),
    "c_member": ("config.add_input({'name': 'I', 'data_type': 'TYPE_INT8',"
                 " 'dims': [1], 'shape': 1}); return config",
                 "contains property other than"),
}


def fill(repository):
    for name, config, source in [
            ("arguments", TEXT, ARGUMENTS), ("codes", TEXT, CODES),
            ("returns", TEXT, RETURNS), ("cancel", TEXT, CANCEL),
            ("end", TEXT, END),
            ("partly", "max_batch_size: 4\ndynamic_batching {"
             " max_queue_delay_microseconds: 300000"
             " preferred_batch_size: [ 3 ] }\n" + TEXT, PARTLY),
            ("complete", "", COMPLETE), ("bare", "", BARE),
            ("names", 'input { name: "IN" }\noutput { name: "OUT" }\n',
             COMPLETE),
            *((f"b_{n}", TEXT, s) for n, s in BROKEN.items()),
            *((n, "max_batch_size: 4\n" + TEXT, ECHO
               + "    @staticmethod\n    def auto_complete_config(config):\n"
               f"        {s}\n") for n, (s, _) in COMPLETES_WRONG.items())]:
        python_backend.model(repository, name, config, source)
    (repository / "b_file/1/model.py").unlink()
    (repository / "bare/config.pbtxt").unlink()
    (repository / "end").chmod(0o777)
    (repository / "cancel").chmod(0o777)


GOOD = ["arguments", "codes", "returns", "cancel", "end", "partly",
        "complete", "names", "bare"]


@pytest.fixture(scope="module")
def server():
    s = python_backend.serve(
        fill, complete=True, parts="health metadata config infer repository",
        http="    inference_model_control explicit;\n"
             "    inference_load_model *;\n")
    with s.start("live"):
        for name in GOOD:
            assert s.wait_for(f"/v2/models/{name}/ready")
        yield s


@pytest.fixture(scope="module")
def grpc(server):
    client = grpcclient.InferenceServerClient(f"127.0.0.1:{server.port2}")
    yield client
    client.close()


def test_arguments_of_initialize(server):
    args = told(server.infer("arguments", text("x")))
    assert args.pop("model_config").startswith("{")
    assert args.pop("model_instance_name") in ("arguments_0_0", "arguments_0")
    assert args == {
        "model_instance_kind": "CPU", "model_instance_device_id": "0",
        "model_repository": str(server.models / "arguments"),
        "model_version": "1", "model_name": "arguments"}


@pytest.mark.parametrize("code,status", [
    ("UNKNOWN", "UNKNOWN"), ("INTERNAL", "INTERNAL"),
    ("NOT_FOUND", "NOT_FOUND"), ("INVALID_ARG", "INVALID_ARGUMENT"),
    ("UNAVAILABLE", "UNAVAILABLE"), ("UNSUPPORTED", "UNIMPLEMENTED"),
    ("ALREADY_EXISTS", "ALREADY_EXISTS"), ("CANCELLED", "CANCELLED"),
    ("", "INTERNAL")])
def test_codes(grpc, code, status):
    with pytest.raises(InferenceServerException) as e:
        infer(grpc, "codes", code)
    assert e.value.status() == f"StatusCode.{status}"
    assert e.value.message() == "as told"


def infer(grpc, model, *given, **kw):
    return grpc.infer(model, tensors(*given), **kw).as_numpy("OUT")


def tensors(*given, shape=None):
    import numpy as np
    array = np.array([w.encode() for w in given], dtype=object)
    array = array.reshape(shape or [len(given)])
    tensor = grpcclient.InferInput("IN", array.shape, "BYTES")
    tensor.set_data_from_numpy(array)
    return [tensor]


@pytest.mark.parametrize("word,why", [
    ("strings", "Expected an 'InferenceResponse' object in the execute "
     "function return list, found type '<class 'str'>'."),
    ("tuple", "Expected a list in the execute return, found type "
     "'<class 'tuple'>'."),
    ("more", "Number of InferenceResponse objects do not match the number of "
     "InferenceRequest objects"),
    ("empty", "Number of InferenceResponse objects do not match the number of "
     "InferenceRequest objects. InferenceRequest(s) size is:1, and "
     "InferenceResponse(s) size is:0\n"),
    ("raise", "ValueError: never works: raise"),
])
def test_wrong_returns(server, word, why):
    answer = server.infer("returns", text(word))
    assert answer.status == 500
    assert re.match(r"Failed to process the request\(s\) for model "
                    r"'returns_0(_0)?', message: " + re.escape(why),
                    answer.error), answer.error
    assert words(server.infer("returns", text("ok"))) == ["ok"]


def test_nothing_for_each_request_and_nothing_sent(server):
    answer = server.infer("returns", text("nones"))
    assert answer.status == 500
    assert words(server.infer("returns", text("ok"))) == ["ok"]


@differs("waits for ever there")
def test_nothing_returned_and_nothing_sent(server):
    answer = server.infer("returns", text("none"))
    assert answer.status == 500
    assert words(server.infer("returns", text("ok"))) == ["ok"]


def test_an_exception_names_file_and_lines(server):
    answer = server.infer("returns", text("raise"))
    place = re.escape(str(server.models / "returns/1/model.py"))
    assert re.fullmatch(
        r"Failed to process the request\(s\) for model 'returns_0(_0)?', "
        r"message: ValueError: never works: raise\n\nAt:\n"
        rf"  {place}\(\d+\): fail\n  {place}\(\d+\): execute\n",
        answer.error), answer.error
    server.wait_log(r"\[error\].*Failed to process the request\(s\) for model "
                    "'returns_0.*never works: raise")


@differs("ends the process there")
def test_system_exit_is_an_exception(server):
    answer = server.infer("returns", text("exit"))
    assert answer.status == 500
    assert "SystemExit" in answer.error
    assert words(server.infer("returns", text("ok"))) == ["ok"]


def test_an_output_that_the_configuration_lacks(server):
    answer = server.infer("returns", text("unknown"))
    assert answer.status in (200, 400, 500)
    if answer.status == 200:            # as NVIDIA's: nobody wants it
        assert answer.json()["outputs"] == []
    assert words(server.infer("returns", text("ok"))) == ["ok"]


def test_an_error_costs_its_own_request(server):
    with Stream(server.port2) as stream:
        for n, word in enumerate(["bad", "b", "c"]):
            stream.send("partly", tensors(word, shape=[1, 1]), id=str(n))
        answers = stream.wait(3)
    good = {r.get_response().id: r.as_numpy("OUT")[0, 0]
            for r, e in answers if e is None}
    assert good == {"1": b"b", "2": b"c"}
    assert [str(e) for r, e in answers if e is not None] == ["not this one"]


def test_cancellation_reaches_the_model(server, grpc):
    failed = threading.Event()
    call = grpc.async_infer("cancel", tensors("x"),
                            lambda result, error: failed.set())
    place = server.models / "cancel"
    assert process.wait_until((place / "runs").exists, 20 * SLOW)
    call.cancel()
    assert failed.wait(20 * SLOW)
    assert process.wait_until((place / "after").exists, 20 * SLOW)
    assert process.wait_until(
        lambda: (place / "after").read_text() == "False True", 5 * SLOW)


@pytest.mark.parametrize("name", ["complete", "names"])
def test_a_model_completes_its_configuration(server, name):
    """The file has nothing, or the names of its tensors."""
    config = server.get(f"/v2/models/{name}/config").json()
    assert config["max_batch_size"] == 4
    assert [t["data_type"] for t in config["input"]] == ["TYPE_STRING"]
    assert "dynamic_batching" in config
    answer = server.infer(name, {"inputs": [{
        "name": "IN", "datatype": "BYTES", "shape": [1, 2],
        "data": ["a", "b"]}]})
    assert words(answer) == ["a", "b"]


# ---- models that do not load

def why_not(server, name):
    """Why it has not loaded; others serve."""
    assert process.wait_until(
        lambda: rows(server, name)[0].get("state") == "UNAVAILABLE",
        30 * SLOW), rows(server, name)
    assert words(server.infer("returns", text("ok"))) == ["ok"]
    return rows(server, name)[0]["reason"]


@pytest.mark.parametrize("name", [n for n in BROKEN if not PREBUILT or any(
    r[0] != "*" for r in REASONS[n])])
def test_broken(server, name):
    reason = why_not(server, f"b_{name}")
    for part in REASONS[name]:
        assert PREBUILT and part[0] == "*" or part.lstrip("*") in reason


def test_neither_a_configuration_nor_a_function_that_completes(server):
    config = server.get("/v2/models/bare/config").json()
    assert config["backend"] == "python"
    assert config["input"] == config["output"] == []
    answer = server.infer("bare", {"inputs": []})
    assert answer.status == 200, answer
    assert answer.json()["outputs"] == []


@pytest.mark.parametrize("name", COMPLETES_WRONG)
def test_wrong_completion(server, name):
    assert COMPLETES_WRONG[name][1] in why_not(server, name)


def test_a_broken_model_is_mended(server):
    answer = ask(server, "load", "b_package")
    assert answer.status == 400
    assert REASONS["package"][0] in answer.error
    (server.models / "b_package/1/model.py").write_text(ECHO)
    assert ask(server, "load", "b_package").status == 200
    assert words(server.infer("b_package", text("x"))) == ["x"]


def test_broken_models_leave_no_process(server):
    running = [process.cmdline(p) for p in process.descendants(server.core())]
    for name in ["b_syntax", *COMPLETES_WRONG]:
        assert not [c for c in running if name in c]
    assert len(index(server)) == len(GOOD) + len(BROKEN) \
        + len(COMPLETES_WRONG)


@differs("its server does not end afterwards")
def test_a_file_s_name_that_is_none_of_python():
    s = python_backend.serve(lambda r: python_backend.model(
        r, "echo", TEXT + 'default_model_filename: "model.txt"\n', ECHO))
    with s.start("live"):
        s.wait_log("model=echo version=1 failed to load: .*" + re.escape(
            "Model name must end with '.py'. Model name is \"model.txt\"."))


@pytest.mark.parametrize("interpreter,why", [
    ("/bin/false", "exited with status 1"),
    ("/no/such/python3", "/no/such/python3"),
    ("#!/bin/sh\nexec sleep 60\n",
     "has not begun within the 2 s of stub-timeout-seconds"),
    (f'#!/bin/sh\nexec {sys.executable} -S "$@"\n',
     "ModuleNotFoundError: No module named 'numpy'"),
    ("no program\n", "Exec format error"),
])
@differs("there is no such setting")
def test_an_interpreter_that_does_not_start(tmp_path, interpreter, why):
    path = interpreter
    if "\n" in interpreter:
        path = tmp_path / "python"
        path.write_text(interpreter)
        path.chmod(0o755)
        tmp_path.chmod(0o755)
    s = python_backend.serve(
        lambda r: (python_backend.model(r, "echo", TEXT, ECHO),
                   models.identity(r, "other", [("IN", "INT32", [-1])])),
        http=f"    inference_backend_config python interpreter={path};\n"
             "    inference_backend_config python stub-timeout-seconds=2;\n")
    with s.start("live"):
        assert s.wait_for("/v2/models/other/ready")
        s.wait_log(r"model=echo version=1 failed to load: .*"
                   + re.escape(why))
        s.wait_log(re.escape(f'"{path}"'))


# ---- the end

def test_finalize_is_called_and_its_exception_is_logged(server):
    assert ask(server, "unload", "end").status == 200
    assert process.wait_until(
        (server.models / "end/finalized").exists, 20 * SLOW)
    server.wait_log("no good end")
    assert process.wait_until(
        lambda: rows(server, "end")[0].get("state") == "UNAVAILABLE",
        20 * SLOW)
    os.unlink(server.models / "end/finalized")


LAST_WORDS = ECHO + """
    def initialize(self, args):
        import pathlib
        self.place = pathlib.Path(args["model_repository"])
    def finalize(self):
        import time
        print("the end begins")
        while (self.place / "hold").exists():
            time.sleep(0.02)
        pb.Logger.log_info("the end is over")
        (self.place / "finalized").touch()
"""


@pytest.fixture
def ending():
    def fill(repository):
        python_backend.model(repository, "last", TEXT, LAST_WORDS)
        (repository / "last").chmod(0o777)
    with python_backend.serve(fill) as s:
        yield s


@differs("what finalize logs is lost there")
def test_nginx_ends_when_models_are_finalized(ending):
    hold = ending.models / "last/hold"
    hold.touch()
    ending.signal("QUIT")
    ending.wait_log("the end begins", 20)
    assert ending.process.poll() is None
    hold.unlink()
    assert ending.process.wait(20 * SLOW) == 0
    assert (ending.models / "last/finalized").exists()
    assert "the end is over" in ending.log_text()


@differs("what finalize logs is lost there")
def test_a_termination_does_not_wait(ending):
    hold = ending.models / "last/hold"
    hold.touch()
    ending.signal("QUIT")
    ending.wait_log("the end begins", 20)
    ending.signal("TERM")
    assert ending.process.wait(20 * SLOW) == 0
    hold.unlink()
