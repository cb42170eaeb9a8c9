"""The reason of a model without a configuration says what its directory
lacks, behind Triton's words."""

import os
import pathlib
import re
import shutil

import pytest

from lib import models
from lib.server import ROOT, SLOW

WORDS = "Could not determine backend for model 'm' with no backend"
HINTS = {
    "no_version": (["model.onnx"], "no version directory: put the model's "
                   "file, such as model.onnx, into m/1"),
    "empty": (["1/"], "m/1 is empty"),
    "misnamed": (["2/two.onnx"], "m/2 holds two.onnx; expected model.onnx"),
    "among_others": (["1/LICENSE.txt", "1/two.onnx"],
                     "m/1 holds two.onnx; expected model.onnx"),
    "no_kind": (["1/weights"], "m/1 holds weights, which is no backend's "
                "file"),
    "no_kind_by_its_end": (["1/model.pth"], "m/1 holds model.pth, which is no "
                           "backend's file"),
}


@pytest.mark.parametrize("what", HINTS)
def test_hints(make_server, what):
    files, hint = HINTS[what]

    def fill(repository):
        for name in files:
            path = pathlib.Path(repository) / "m" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if name.endswith("/"):
                path.mkdir()
            else:
                path.write_bytes(b"x")

    server = make_server(fill, wait="live", parts="health repository")
    assert server.wait_log("Could not determine backend", 20 * SLOW)
    row, = server.post("/v2/repository/index", b"{}").json()
    assert WORDS in row["reason"]
    assert f"({hint})" in row["reason"]


def test_a_model_without_a_version_directory(make_server):
    def fill(repository):
        place = models.identity(repository, "m", [("IN", "INT32", [-1])])
        (place / "1").rmdir()

    server = make_server(fill, wait="live", parts="health repository")
    assert server.wait_log("at least one version must be", 20 * SLOW)
    row, = server.post("/v2/repository/index", b"{}").json()
    assert "(no version directory: put the model's file into m/1, " \
        in row["reason"]


def test_an_unknown_backend(make_server):
    def fill(repository):
        models.identity(repository, "m", [("IN", "INT32", [-1])],
                        backend="identitty")

    server = make_server(fill, wait="live", parts="health repository")
    assert server.wait_log("unable to find backend library", 20 * SLOW)
    row, = server.post("/v2/repository/index", b"{}").json()
    known = row["reason"].split("(there are:")[1].split(")")[0].split()
    assert "identity" in known and known == sorted(known)
    assert "did you mean 'identity'?; docs/install.md" in row["reason"]


def test_a_backend_of_triton_without_its_platform(make_server):
    def fill(repository):
        models.identity(repository, "m", [("IN", "INT32", [-1])],
                        backend="tensorflow")

    server = make_server(fill, wait="live", parts="health repository")
    assert server.wait_log("platform' and 'backend' pair", 20 * SLOW)
    row, = server.post("/v2/repository/index", b"{}").json()
    assert "got:, tensorflow; 'tensorflow_graphdef' is one" in row["reason"]


@pytest.mark.skipif(os.geteuid() != 0, reason="files of another user")
def test_a_file_that_the_core_may_not_read(make_server):
    def fill(repository):
        place = pathlib.Path(repository) / "m"
        shutil.copytree(ROOT / "examples/models/digits", place)
        (place / "1/model.onnx").chmod(0o600)

    server = make_server(fill, wait="live", user="nobody nogroup",
                         parts="health repository")
    assert server.wait_log("cannot read ", 20 * SLOW)
    row, = server.post("/v2/repository/index", b"{}").json()
    assert "model.onnx\": Permission denied; the core runs as user nobody" \
        in row["reason"]


@pytest.mark.skipif(os.geteuid() != 0, reason="files of another user")
def test_a_directory_that_the_core_may_not_list(make_server):
    def fill(repository):
        (pathlib.Path(repository) / "m").mkdir(0o700)

    server = make_server(fill, wait="live", user="nobody nogroup",
                         parts="health repository")
    assert server.wait_log(r"failed to open directory \S+/m: Permission denied "
                           r"\(the core runs as user nobody", 20 * SLOW)


def test_too_few_labels(make_server):
    def fill(repository):
        for name, count in [("few", 2), ("enough", 3)]:
            place = models.identity(
                repository, name, [("IN", "FP32", [3])],
                outputs=[("OUT", "FP32", [3],
                          'label_filename: "labels.txt"')])
            (place / "labels.txt").write_text("a\nb\nc\n"[:2 * count])

    server = make_server(fill)
    assert server.wait_log(r"\[warn\] .*model=few: labels.txt has 2 labels "
                           r"for the 3 elements of output 'OUT'", 20 * SLOW)
    assert "model=enough: labels" not in server.log_text()


RELOAD = "; not reloaded, version 1 goes on serving"


@pytest.mark.parametrize("text,reason", [
    ('backend: "identity"\ninput [ { nmae: "x" } ]\n', r"nmae.*mean.*name"),
    ('backend: "identity"\nversion_policy { specific { versions: 7 } }\n',
     "version"),
    ('backend: "gone"\n' + models.io_block("input", [("IN", "INT32", [-1])])
     + models.io_block("output", [("OUT", "INT32", [-1])]),
     "unable to find backend library"),
], ids=["config", "policy", "backend"])
def test_a_reload_that_fails(make_server, text, reason):
    """Log and client are told why, and that the loaded version goes on."""
    def fill(repository):
        models.identity(repository, "m", [("IN", "INT32", [-1])])

    server = make_server(fill, parts="health repository",
                         http="    inference_model_control explicit;\n"
                              "    inference_load_model m;\n")
    (server.models / "m/config.pbtxt").write_text(text)
    answer = server.post("/v2/repository/models/m/load", b"{}")
    assert answer.status >= 400
    told = answer.json()["error"]
    assert re.search(reason, told) and told.strip().endswith(RELOAD), told
    assert server.wait_log(rf"\[error\] .*m\b.*{reason}.*{RELOAD}", 20 * SLOW)
    assert server.get("/v2/models/m/versions/1/ready").status == 200

    answer = server.post("/v2/repository/models/no/load", b"{}")
    assert answer.json()["error"] == \
        "failed to load 'no', failed to poll from model repository"


def test_a_model_of_two_repositories_names_both(make_server, tmp_path):
    tmp_path.chmod(0o755)

    def fill(repository):
        models.identity(repository, "m", [("IN", "INT32", [-1])])
        models.identity(tmp_path, "m", [("IN", "INT32", [-1])])

    server = make_server(fill, wait="live", parts="health repository",
                         http=f"    inference_repository {tmp_path};\n")
    assert server.wait_log(rf"'m' appears in two or more repositories: "
                           rf"'{server.models}' and '{tmp_path}'", 20 * SLOW)
