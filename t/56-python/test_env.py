"""EXECUTION_ENV_PATH: directories and archives, what activation sets, archives
that climb out; variables of the server; settings that are accepted."""

import io
import os
import shutil
import subprocess
import tarfile
import tempfile

import pytest

from lib import models, process, python_backend
from lib.python_backend import (ECHO, INTERPRETER, TELL, TEXT, differs, text,
                                told, words)
from lib.repository import ask, rows
from lib.server import SLOW, nap

HERE = "$$TRITON_MODEL_DIRECTORY"
EXTRACTING = "Extracting Python execution env"

WHERE = TELL + """
import os
import sys

class TritonPythonModel:
    def execute(self, requests):
        return [tell({"program": sys.executable, "prefix": sys.prefix,
                      "numpy": np.__version__,
                      "set": {k: v for k, v in os.environ.items()
                              if k.startswith(("T_", "PATH", "VIRTUAL_ENV",
                                               "CONDA"))}})
                for r in requests]
"""


@pytest.fixture(scope="module")
def place():
    """Environments: venv/, venv.tar, conda/."""
    root = tempfile.mkdtemp(prefix="inf-t-env-")
    os.chmod(root, 0o755)
    path = os.path.join(root, "venv")
    subprocess.run([INTERPRETER, "-c", "import sys, venv; venv.EnvBuilder("
                    "symlinks=False, with_pip=False).create(sys.argv[1])",
                    path], check=True)
    for link in ("lib64",):
        if os.path.islink(os.path.join(path, link)):
            os.unlink(os.path.join(path, link))
    (packages,) = [d for d, _, _ in os.walk(path)
                   if d.endswith("site-packages")]
    packages_of_tests = subprocess.run(
        [INTERPRETER, "-c", "import numpy, os; "
         "print(os.path.dirname(os.path.dirname(numpy.__file__)))"],
        check=True, capture_output=True, text=True).stdout
    with open(os.path.join(packages, "tests.pth"), "w") as f:
        f.write(packages_of_tests)
    pack(path, os.path.join(root, "venv.tar"))
    conda(os.path.join(root, "conda"))
    yield root
    shutil.rmtree(root)


def pack(folder, archive):
    with tarfile.open(archive, "w") as tar:
        tar.add(folder, ".")


def conda(folder):
    """Its interpreter is a program that starts that of the tests."""
    for name, content in [
            ("bin/python3", f'#!/bin/sh\nexec {INTERPRETER} "$@"\n'),
            ("bin/activate", "export T_SET_BY='activate script'\n"
                             "echo it speaks\n"),
            ("conda-meta/history", "")]:
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(content)
        os.chmod(path, 0o755)


def entry(tar, name, data=b"x", **kw):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in kw.items():
        setattr(info, key, value)
    tar.addfile(info, io.BytesIO(data) if data else None)


# name: (its last entry, what the reason says)
EVIL = {
    "relative": (("../../escaped",), {}, "leaves the directory"),
    "deep": (("lib/../../escaped",), {}, "leaves the directory"),
    "absolute": (("/tmp/inf-t-escaped",), {}, "leaves the directory"),
    "symlink": (("lib/out", b""), {"type": tarfile.SYMTYPE,
                                   "linkname": "../../escaped"},
                "outside the directory"),
    "far_symlink": (("out", b""), {"type": tarfile.SYMTYPE,
                                   "linkname": "/etc"},
                    "outside the directory"),
    "venv": (("bin/python3.11", b""), {"type": tarfile.SYMTYPE,
                                       "linkname": "/usr/bin/python3.11"},
             "is a link to \"/usr/bin/python3.11\", outside the directory "
             "that the archive is extracted to; an environment made by "
             "\"python3 -m venv --copies\" has no such links"),
    "hardlink": (("out", b""), {"type": tarfile.LNKTYPE,
                                "linkname": "../escaped"},
                 "outside the directory"),
    "device": (("null", b""), {"type": tarfile.CHRTYPE},
               "no file, directory or link"),
}
BAD = {
    "missing": (HERE + "/absent.tar.gz", "absent.tar.gz"),
    "outside": (HERE + "/../venv.tar", "leaves the model's directory"),
    "relative_path": ("venv.tar", "neither an absolute path"),
    "no_archive": (HERE + "/config.pbtxt", "config.pbtxt"),
    "no_python": (HERE + "/1", "has no interpreter"),
}


def parameter(value):
    return TEXT + models.parameter_block({"EXECUTION_ENV_PATH": value})


@pytest.fixture(scope="module")
def server(place):
    def fill(repository):
        add = python_backend.model
        add(repository, "default", TEXT, WHERE)
        add(repository, "folder", parameter(f"{place}/venv"), WHERE)
        add(repository, "archive", parameter(f"{place}/venv.tar"), WHERE)
        add(repository, "inside", parameter(f"{HERE}/env.tar"), WHERE)
        shutil.copy(f"{place}/venv.tar", repository / "inside/env.tar")
        add(repository, "same", parameter(f"{place}/venv.tar")
            + "instance_group { count: 2 kind: KIND_CPU }\n", WHERE)
        add(repository, "conda", parameter(f"{place}/conda"), WHERE)
        for name, (arguments, keywords, _) in EVIL.items():
            add(repository, f"e_{name}", parameter(f"{HERE}/env.tar"), ECHO)
            with tarfile.open(repository / f"e_{name}/env.tar", "w") as tar:
                entry(tar, "bin/activate")
                entry(tar, *arguments, **keywords)
        for name, (value, _) in BAD.items():
            add(repository, f"b_{name}", parameter(value), ECHO)
        for value in ("yes", "no", "maybe"):
            add(repository, f"force_{value}", TEXT + models.parameter_block(
                {"FORCE_CPU_ONLY_INPUT_TENSORS": value}), ECHO)

    temporary = os.path.join(place, "tmp")
    os.mkdir(temporary)
    os.chmod(temporary, 0o777)
    settings = "".join(
        f"    inference_backend_config python {s};\n" for s in (
            "shm-default-byte-size=1048576", "shm-growth-byte-size=1048576",
            "stub-timeout-seconds=40", "thread-pool-size=4"))
    with python_backend.serve(
            fill, env=['"T_OF_SERVER=it is here"', f"TMPDIR={temporary}"],
            parts="health metadata config infer repository",
            http="    inference_model_control explicit;\n" + settings
            + "".join(f"    inference_load_model {n};\n" for n in (
                "default", "folder", "archive", "inside", "same", "conda",
                "force_yes", "force_no"))) as s:
        s.temporary = temporary
        yield s
    assert os.listdir(temporary) == []


def where(server, model):
    return told(server.infer(model, text("x")))


pytestmark = differs("its stub needs the libpython of each environment")


def test_variables_of_the_server(server):
    assert where(server, "default")["set"]["T_OF_SERVER"] == "it is here"
    assert where(server, "conda")["set"]["T_OF_SERVER"] == "it is here"


def test_a_directory(server, place):
    said = where(server, "folder")
    assert said["prefix"] == f"{place}/venv"
    assert said["set"]["VIRTUAL_ENV"] == f"{place}/venv"
    assert said["set"]["PATH"].startswith(f"{place}/venv/bin:")


@pytest.mark.parametrize("name", ["archive", "inside", "same"])
def test_an_archive(server, name):
    said = where(server, name)
    assert said["prefix"].startswith(server.temporary)
    assert said["set"]["VIRTUAL_ENV"] == said["prefix"]
    assert said["program"].startswith(said["prefix"])
    assert said["numpy"]


def test_an_archive_is_extracted_once(server, place):
    assert where(server, "archive")["prefix"] == where(server, "same")[
        "prefix"] != where(server, "inside")["prefix"]
    server.wait_said(f"{EXTRACTING} {place}/venv.tar")
    assert len(os.listdir(server.temporary)) == 2
    for name in os.listdir(server.temporary):
        assert os.stat(os.path.join(server.temporary, name)).st_mode \
            & 0o777 == 0o700


def test_conda(server, place):
    said = where(server, "conda")
    assert said["set"]["T_SET_BY"] == "activate script"
    assert said["set"]["CONDA_PREFIX"] == f"{place}/conda"
    assert said["set"]["PATH"].startswith(f"{place}/conda/bin:")
    assert "VIRTUAL_ENV" not in said["set"]


def test_an_archive_that_has_changed(server):
    archive = server.models / "inside/env.tar"
    line = f"{EXTRACTING} {archive}"
    before = where(server, "inside")["prefix"]
    server.wait_said(line)
    os.utime(server.models / "inside/1/model.py")
    assert ask(server, "load", "inside").status == 200
    assert server.log_text().count(line) == 1
    os.utime(archive)
    os.utime(server.models / "inside/1/model.py")
    assert ask(server, "load", "inside").status == 200
    after = where(server, "inside")["prefix"]
    server.wait_said(line, 2)
    assert after != before
    assert process.wait_until(lambda: not os.path.exists(before), 20 * SLOW)


def test_unload_removes_it(server):
    prefix = where(server, "inside")["prefix"]
    assert ask(server, "unload", "inside").status == 200
    assert process.wait_until(lambda: not os.path.exists(prefix), 20 * SLOW)
    assert where(server, "same")["numpy"]


def load(server, name):
    """Why it does not."""
    assert ask(server, "load", name).status >= 400
    assert words(server.infer("force_no", text("x"))) == ["x"]
    (row,) = rows(server, name)
    assert row["state"] == "UNAVAILABLE"
    return row["reason"]


@pytest.mark.parametrize("name", EVIL)
def test_an_archive_that_climbs_out(server, name):
    left = len(os.listdir(server.temporary))
    reason = load(server, f"e_{name}")
    assert EVIL[name][2] in reason
    assert f"e_{name}/env.tar" in reason
    assert EVIL[name][0][0] in reason
    assert len(os.listdir(server.temporary)) == left
    for path in (server.temporary, os.path.dirname(server.temporary),
                 server.models, server.models / f"e_{name}"):
        assert not os.path.lexists(os.path.join(path, "escaped"))
    assert not os.path.lexists("/tmp/inf-t-escaped")


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_environment(server, name):
    reason = load(server, f"b_{name}")
    assert BAD[name][1] in reason
    assert BAD[name][0] in reason


def test_an_activate_script_that_fails(server, place):
    path = os.path.join(place, "conda/bin/activate")
    with open(path) as f:
        before = f.read()
    try:
        with open(path, "w") as f:
            f.write("echo not licensed >&2\nexit 4\n")
        assert ask(server, "unload", "conda").status == 200
        reason = load(server, "conda")
        assert "ended with status 4: not licensed" in reason
    finally:
        with open(path, "w") as f:
            f.write(before)
    assert ask(server, "load", "conda").status == 200
    assert where(server, "conda")["set"]["T_SET_BY"] == "activate script"


# ---- parameters and settings

def test_force_cpu_only(server):
    for value in ("yes", "no"):
        assert words(server.infer(f"force_{value}", text("x"))) == ["x"]
    assert "FORCE_CPU_ONLY_INPUT_TENSORS: 'maybe'" in load(
        server, "force_maybe")


def test_settings_without_effect_are_named_once(server):
    for name in ("shm-default-byte-size", "shm-growth-byte-size",
                 "thread-pool-size"):
        server.wait_said(f"setting {name} of backend python has no effect")
    assert "setting stub-timeout-seconds" not in server.log_text()


@differs("has no such bound")
def test_an_archive_that_is_too_large(place):
    """Other models load."""
    def fill(repository):
        python_backend.model(repository, "echo", TEXT, ECHO)
        python_backend.model(
            repository, "packed", TEXT + models.parameter_block(
                {"EXECUTION_ENV_PATH": f"{place}/venv.tar"}), ECHO)

    s = python_backend.serve(
        fill, http="    inference_backend_config python "
        "environment-byte-size=100000;\n")
    with s.start("live"):
        s.wait_log("packed.*takes more than 100000 bytes; setting "
                   "environment-byte-size of backend python permits more",
                   20)
        assert s.wait_for("/v2/models/echo/ready")
        assert words(s.infer("echo", text("x"))) == ["x"]


def test_a_wrong_setting(make_server):
    s = python_backend.serve(
        lambda r: python_backend.model(r, "echo", TEXT, ECHO),
        http="    inference_backend_config python stub-timeout-seconds=x;\n")
    with s.start("live"):
        s.wait_log("stub-timeout-seconds of backend python is .?.?x")
        nap(0.05)
