"""Backends that are a model.py: backends/NAME/model.py runs the models of
NAME, which bring files, and no code."""

import pytest

from lib import prebuilt, python_backend
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
        data(repository, "broken", "t_broken", TEXT)
        data(repository, "absent", "t_no_such", TEXT)
    with python_backend.serve(
            fill, backends=[backends], complete=True,
            parts="health metadata config infer repository generate",
            http="    inference_model_control explicit;\n"
            + "".join(f"    inference_load_model {n};\n"
                      for n in ("first", "second", "stream"))) as s:
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
