"""make install: what is built goes where nginx and people look."""

import os
import subprocess

import pytest

from lib.server import BUILD, ROOT

# Programs that build or fetch; each leaves a mark.
FORBIDDEN = ["cc", "gcc", "c++", "g++", "clang", "cmake", "ninja", "pip",
             "pip3", "python3", "apt-get", "curl", "wget", "git", "protoc-c"]


def install(destination, *, build=BUILD, prefix="/usr/local", env=None):
    return subprocess.run(
        ["make", "-s", "install", f"BUILD={build}", f"PREFIX={prefix}",
         f"DESTDIR={destination}"], cwd=ROOT, capture_output=True, text=True,
        check=False, env=env or os.environ)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """(the directory that stands for /, the marks of forbidden programs)"""
    base = tmp_path_factory.mktemp("install")
    for name in FORBIDDEN:
        shim = base / "bin" / name
        shim.parent.mkdir(exist_ok=True)
        shim.write_text(f"#!/bin/sh\necho {name} >> {base}/marks\nexit 1\n")
        shim.chmod(0o755)
    env = {**os.environ, "PATH": f"{base}/bin:{os.environ['PATH']}"}
    done = install(base / "root", env=env)
    assert done.returncode == 0, done.stderr
    marks = base / "marks"
    return base / "root", marks.read_text() if marks.exists() else ""


def test_nothing_is_built_or_fetched(installed):
    assert installed[1] == ""


@pytest.mark.parametrize("file", [
    "bin/inference-server",
    "include/triton/core/tritonbackend.h",
    "lib/nginx-inference/inference-core",
    "lib/nginx-inference/ngx_http_inference_module.so",
    "lib/nginx-inference/backends/onnxruntime/libonnxruntime.so.1",
    "lib/systemd/system/inference-core.service",
    "lib/systemd/system/nginx.service.d/inference.conf",
    "share/doc/nginx-inference/README.md",
    "share/doc/nginx-inference/LICENSE",
    "share/doc/nginx-inference/docs/directives.md",
    "share/doc/nginx-inference/licences/onnxruntime/ThirdPartyNotices.txt",
    "share/doc/nginx-inference/licences/pytorch/torch/LICENSE",
    "share/nginx-inference/conf.d/triton.conf",
    "share/nginx-inference/examples/models/digits/1/model.onnx",
    "share/nginx-inference/examples/models/identity/1",
    "share/nginx-inference/examples/digits/send.py"])
def test_it_is_there(installed, file):
    assert (installed[0] / "usr/local" / file).exists()


def test_the_module_s_file_for_modules_enabled(installed):
    available = installed[0] / "usr/local/share/nginx/modules-available"
    assert (available / "mod-http-inference.conf").read_text() == \
        "load_module /usr/local/lib/nginx-inference/" \
        "ngx_http_inference_module.so;\n"


def test_all_links_lead_somewhere(installed):
    for path in installed[0].rglob("*"):
        assert path.exists(), path


def test_no_file_names_the_build_or_the_directory(installed):
    """Nor a place that PREFIX is not."""
    root = installed[0]
    for path in root.rglob("*"):
        if not path.is_file() or path.suffix in (".so", ".onnx"):
            continue
        data = path.read_bytes()
        assert str(root).encode() not in data, path
        if path.suffix in (".conf", ".service", ".pbtxt") \
                and "examples" not in path.parts:
            assert str(BUILD).encode() not in data, path
            assert b"/usr/lib/nginx-inference" not in data, path
            assert b"/usr/share/nginx-inference" not in data, path


def test_no_leftovers_of_git_and_builds(installed):
    names = {path.name for path in installed[0].rglob("*")}
    assert not names & {".gitignore", ".gitkeep", "__pycache__", "run.sh",
                        "CMakeFiles"}


def test_without_a_build(tmp_path):
    """It says so, and installs nothing."""
    (tmp_path / "build").mkdir()
    done = install(tmp_path / "root", build=tmp_path / "build")
    assert done.returncode != 0
    assert f"{tmp_path}/build/inference-server is not there: build first " \
        "(make build)" in done.stderr
    assert not (tmp_path / "root").exists()
