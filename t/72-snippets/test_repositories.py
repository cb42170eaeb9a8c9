"""docs/repositories.md: a repository as the page lays it out."""

import re
import shutil

from lib.server import ROOT
from lib.wire import tensor

PAGE = (ROOT / "docs/repositories.md").read_text()
EXAMPLE = ROOT / "examples/models/digits"


def blocks(kind):
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.S)


def test_the_configuration_serves_both_versions(make_server):
    (config,) = blocks("pbtxt")
    layout = blocks("text")[0]

    def fill(folder):
        model = folder / "digits"
        for version in ("1", "2"):
            (model / version).mkdir(parents=True)
            shutil.copy(EXAMPLE / "1/model.onnx", model / version)
        shutil.copy(EXAMPLE / "labels.txt", model)
        (model / "config.pbtxt").write_text(config)
        for file in model.rglob("*"):
            assert re.search(rf"^ +{re.escape(file.name)}/?(\s|$)", layout,
                             re.M), file

    server = make_server(fill, http="    inference_check strict;\n")
    status, output = server.check_config()
    assert status == 0 and "digits" not in output, output
    for version in "12":
        assert server.status(f"/v2/models/digits/versions/{version}/ready") \
            == 200
    answer = server.infer("digits", {
        "inputs": [tensor("image", "FP32", [1, 8, 8], [0] * 64)],
        "outputs": [{"name": "scores", "parameters": {"classification": 1}}]})
    assert answer.status == 200, answer
    ready = server.get("/v2/models/digits/config").json()
    assert ready["instance_group"][0]["count"] == 2
    assert ready["dynamic_batching"]["default_queue_policy"][
        "max_queue_size"] == 256


def test_files_that_tell_the_backend():
    """As the source has them."""
    source = (ROOT / "core/model/config_infer.c").read_text()
    (sentence,) = re.findall(r"^(`model\.onnx`.*?) tell which", PAGE, re.M)
    for name in re.findall(r"`([\w.]+)`", sentence):
        assert f'"{name}"' in source, name
