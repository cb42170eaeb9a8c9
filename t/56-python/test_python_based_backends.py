"""Backends that are a model.py: backends/NAME/model.py runs the models of
NAME, which bring files, and no code."""

import json

import numpy as np
import pytest
import tritonclient.grpc as grpcclient

from lib import prebuilt, python_backend
from lib.front_end import Stream
from lib.python_backend import PREBUILT, TELL, TEXT, text, told, words
from lib.repository import ask
from lib.server import BACKENDS

# what each of its models has in words.txt
READER = TELL + """
import os
import helper_of_reader

class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        for add, name in ((config.add_input, "IN"),
                          (config.add_output, "OUT")):
            add({"name": name, "data_type": "TYPE_STRING", "dims": [-1]})
        return config
    def initialize(self, args):
        self.args = args
        self.place = pb.get_model_dir()
        with open(os.path.join(args["model_repository"], "1",
                               "words.txt")) as f:
            self.words = f.read().split()
    def execute(self, requests):
        return [tell({"words": self.words, "module": __name__,
                      "file": os.path.basename(__file__),
                      "place": self.place, "helps": helper_of_reader.WORD,
                      "model": self.args["model_name"]})
                for r in requests]
"""
DECOUPLED = """\
import triton_python_backend_utils as pb

class TritonPythonModel:
    def execute(self, requests):
        for r in requests:
            r.get_response_sender().send(pb.InferenceResponse([pb.Tensor(
                "OUT", pb.get_input_tensor_by_name(r, "IN").as_numpy())]), 1)
"""


# an engine with a loop and a thread of its own, whose requests come and go
ENGINE = """\
import asyncio
import json
import threading
import numpy as np
import triton_python_backend_utils as pb

class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "text_input", "data_type": "TYPE_STRING",
                          "dims": [1]})
        config.add_output({"name": "text_output", "data_type": "TYPE_STRING",
                           "dims": [-1]})
        config.set_model_transaction_policy({"decoupled": True})
        config.set_max_batch_size(0)
        return config
    def initialize(self, args):
        self.logger = pb.Logger
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.open = 0
    def execute(self, requests):
        for request in requests:
            asyncio.run_coroutine_threadsafe(self.generate(request),
                                             self.loop)
        return None
    async def generate(self, request):
        sender = request.get_response_sender()
        self.open += 1
        try:
            options = json.loads(request.parameters())
            words = pb.get_input_tensor_by_name(
                request, "text_input").as_numpy()[0].decode().split()
            if not words:
                raise ValueError("no words")
            for number in range(int(options.get("max_tokens", 3))):
                if sender.is_cancelled():
                    self.logger.log_info("t engine: cancelled")
                    break
                sender.send(self.answer(words[number % len(words)]))
                await asyncio.sleep(0.005)
            sender.send(flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        except Exception as e:
            sender.send(pb.InferenceResponse(
                error=pb.TritonError(f"error generating: {e}")),
                flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        finally:
            self.open -= 1
    def answer(self, word):
        return pb.InferenceResponse([pb.Tensor("text_output", np.array(
            [word.encode()], dtype=np.object_))])
    def finalize(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.logger.log_info(f"t engine: {self.open} left")
"""


@pytest.fixture(scope="module")
def backends(tmp_path_factory):
    """A directory of backends beside that of python."""
    if PREBUILT:
        root = prebuilt.folder()
    else:
        root = tmp_path_factory.mktemp("backends")
        root.chmod(0o755)
        (root / "python").symlink_to(BACKENDS / "python")
    for name, files in [
            ("t_reader", {"model.py": READER,
                          "helper_of_reader.py": "WORD = 'yes'\n"}),
            ("t_streamer", {"model.py": DECOUPLED}),
            ("t_engine", {"model.py": ENGINE}),
            ("t_broken", {"model.py": "import no_such_package\n"})]:
        (root / name).mkdir(exist_ok=True)
        for file, source in files.items():
            (root / name / file).write_text(source, encoding="utf-8")
    return root


def data(repository, name, backend, config=""):
    place = repository / name / "1"
    place.mkdir(parents=True)
    (place / "words.txt").write_text(f"words of {name}\n")
    (place.parent / "config.pbtxt").write_text(
        f'backend: "{backend}"\n' + config)


@pytest.fixture(scope="module")
def server(backends):
    def fill(repository):
        data(repository, "first", "t_reader")
        data(repository, "second", "t_reader", TEXT)
        data(repository, "stream", "t_streamer", TEXT
             + "model_transaction_policy { decoupled: true }\n")
        data(repository, "engine", "t_engine")
        data(repository, "broken", "t_broken", TEXT)
        data(repository, "absent", "t_no_such", TEXT)
    with python_backend.serve(
            fill, backends=[backends], complete=True,
            parts="health metadata config infer repository generate",
            http="    inference_model_control explicit;\n"
            + "".join(f"    inference_load_model {n};\n"
                      for n in ("first", "second", "stream", "engine"))) as s:
        yield s


@pytest.mark.parametrize("name", ["first", "second"])
def test_each_model_has_its_own_files(server, backends, name):
    said = told(server.infer(name, text("x")))
    assert said.pop("place") in (str(server.models / name / "1"),
                                 str(backends / "t_reader"))
    assert said == {"words": ["words", "of", name], "module": "model",
                    "file": "model.py", "helps": "yes", "model": name}


def test_the_configuration_names_both(server):
    config = server.get("/v2/models/first/config").json()
    assert config["backend"] == "t_reader"
    assert config["runtime"] == "model.py"
    assert [t["name"] for t in config["input"]] == ["IN"]


def test_a_decoupled_one(server):
    answer = server.post("/v2/models/stream/generate", b'{"IN": "a"}')
    assert answer.status == 200
    assert answer.json()["OUT"] == "a"


def test_one_that_does_not_load(server):
    answer = ask(server, "load", "broken")
    assert answer.status >= 400
    assert "no_such_package" in answer.error
    assert words(server.infer("second", text("x")))


def test_one_that_is_not_there(server):
    answer = ask(server, "load", "absent")
    assert answer.status >= 400
    assert "t_no_such" in answer.error


def test_unload_and_load(server):
    assert ask(server, "unload", "first").status == 200
    assert ask(server, "load", "first").status == 200
    assert told(server.infer("first", text("x")))["model"] == "first"


# ---- an engine

def prompt(words):
    tensor = grpcclient.InferInput("text_input", [1], "BYTES")
    tensor.set_data_from_numpy(np.array([words.encode()], dtype=object))
    return [tensor]


def test_an_engine_streams(server):
    with Stream(server.port2) as stream:
        for n in range(6):
            stream.send("engine", prompt(f"a{n} b{n}"), id=str(n),
                        parameters={"max_tokens": n},
                        enable_empty_final_response=True)
        answers = stream.wait(6 + sum(range(6)))
    for n in range(6):
        mine = [r.as_numpy("text_output") for r, e in answers
                if r.get_response().id == str(n)]
        assert mine[-1] is None
        assert [w[0].decode() for w in mine[:-1]] \
            == [f"{'ab'[k % 2]}{n}" for k in range(n)]


def test_an_engine_generates(server):
    answer = server.post("/v2/models/engine/generate_stream", json.dumps(
        {"text_input": "x y", "max_tokens": 3}).encode())
    assert answer.status == 200
    events = [json.loads(line[6:])["text_output"] for line in
              answer.body.decode().split("\n\n") if line]
    assert events == ["x", "y", "x"]


def test_an_engine_s_error(server):
    with Stream(server.port2) as stream:
        stream.send("engine", prompt(" "))
        ((_, error),) = stream.wait(1)
    assert error.message() == "error generating: no words"


def test_an_engine_hears_of_cancellation_and_its_end(server):
    stream = Stream(server.port2)
    stream.send("engine", prompt("x"), parameters={"max_tokens": 100000})
    stream.wait(3)
    stream.cancel()
    server.wait_log("t engine: cancelled")
    assert ask(server, "unload", "engine").status == 200
    server.wait_log("t engine: 0 left")
