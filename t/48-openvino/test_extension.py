"""CPU_EXTENSION_PATH: a model with an operator of its own."""

import pathlib
import subprocess

import pytest

from lib import models
from lib.openvino_models import openvino
from lib.repository import EXPLICIT, PARTS, ask, rows
from lib.server import SANITIZER
from lib.wire import tensor

PACKAGE = pathlib.Path(openvino.__file__).parent
PORT = '<port id="{}" precision="FP32"{}><dim>-1</dim><dim>2</dim></port>'

# Y = Twice(X), as the library writes models
MODEL = f"""<?xml version="1.0"?>
<net name="twice" version="11">
  <layers>
    <layer id="0" name="X" type="Parameter" version="opset1">
      <data shape="?,2" element_type="f32"/>
      <output>{PORT.format(0, ' names="X"')}</output>
    </layer>
    <layer id="1" name="twice" type="Twice" version="own">
      <input>{PORT.format(0, "")}</input>
      <output>{PORT.format(1, ' names="Y"')}</output>
    </layer>
    <layer id="2" name="Y" type="Result" version="opset1">
      <input>{PORT.format(0, "")}</input>
    </layer>
  </layers>
  <edges>
    <edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
    <edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>
  </edges>
</net>
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    directory = tmp_path_factory.mktemp("extension")
    path = directory / "libtwice.so"
    source = pathlib.Path(__file__).with_name("twice.cc")
    libraries = PACKAGE / "libs"
    subprocess.run(
        ["g++", "-std=c++17", "-shared", "-fPIC", "-I", PACKAGE / "include",
         "-o", path, source, next(libraries.glob("libopenvino.so.*"))],
        check=True)
    directory.chmod(0o755)
    return path


@pytest.mark.skipif(bool(SANITIZER),
                    reason="the library leaks what a failed load has thrown")
def test_an_operator_of_the_model_s_own(make_server, library):
    def fill(repository):
        for name, path in (("with", library), ("without", "")):
            models.write_model(
                repository, name, 'backend: "openvino"\n'
                + models.parameter_block({"CPU_EXTENSION_PATH": path}), (1,),
                {1: {"model.xml": MODEL.encode(), "model.bin": b""}})

    server = make_server(fill, http=EXPLICIT, parts=PARTS,
                         allow_alarms=["model=without"])
    assert ask(server, "load", "with").status == 200
    # the extension is the model's alone
    assert ask(server, "load", "without").status != 200
    reason, = {r["reason"] for r in rows(server, "without")}
    assert "Twice" in reason
    for _ in range(2):
        answer = server.infer("with", {"inputs": [
            tensor("X", "FP32", [2, 2], [1, 2, 3, 4.5])]})
        assert answer.json()["outputs"][0]["data"] == [2, 4, 6, 9]
        assert ask(server, "unload", "with").status == 200
        assert ask(server, "load", "with").status == 200
