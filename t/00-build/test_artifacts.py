"""The files of a build, by the names that scripts rely on."""

import re
import subprocess

import pytest

from lib.server import BUILD, MODULE, ROOT, SANITIZER


def defined_symbols(library):
    out = subprocess.run(["nm", "-D", "--defined-only", str(library)],
                         capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].split("@")[0] for line in out.splitlines()}


@pytest.mark.parametrize("name", [
    "ngx_http_inference_module.so", "inference-core", "libtritonserver.so",
    "inference-server", "backends/identity/libtriton_identity.so",
    "backends/onnxruntime/libtriton_onnxruntime.so",
    "backends/openvino/libtriton_openvino.so",
    "agents/checksum/libtritonrepoagent_checksum.so"])
def test_artifact_exists(name):
    assert (BUILD / name).is_file()


def test_library_exports_the_abi_and_private_entries():
    symbols = defined_symbols(BUILD / "libtritonserver.so")
    others = {s for s in symbols if not re.fullmatch(
        r"TRITON(SERVER|BACKEND|CACHE|REPOAGENT)_\w+", s)}
    # a version node is listed as a symbol of its own
    others = {s for s in others if not re.fullmatch(r"[A-Z_0-9.]+", s)}
    assert others == {"inf_core_main", "inf_memory_file",
                      "inf_memory_file_ended", "inf_outputs_are_cached"}
    assert "TRITONBACKEND_RequestRelease" in symbols
    assert "TRITONSERVER_ErrorNew" in symbols


def test_library_has_the_plain_soname():
    out = subprocess.run(["readelf", "-d", BUILD / "libtritonserver.so"],
                         capture_output=True, text=True, check=True).stdout
    assert re.search(r"SONAME.*\[libtritonserver\.so\]", out)


@pytest.mark.parametrize("backend", ["identity", "onnxruntime", "openvino"])
def test_backend_exports_only_the_abi(backend):
    library = BUILD / f"backends/{backend}/libtriton_{backend}.so"
    extra = {s for s in defined_symbols(library)
             if not s.startswith("TRITONBACKEND_")}
    assert not extra


def test_module_exports_only_what_nginx_looks_for():
    symbols = defined_symbols(MODULE)
    extra = {s for s in symbols if not re.fullmatch(
        r"ngx_modules|ngx_module_names|ngx_module_order|"
        r"ngx_http_inference_\w+", s)}
    if SANITIZER:
        extra = {s for s in extra if "san" not in s}
    assert not extra


def test_module_needs_no_core_library():
    out = subprocess.run(["readelf", "-d", MODULE],
                         capture_output=True, text=True, check=True).stdout
    assert "libtritonserver" not in out


@pytest.mark.parametrize("compiler", [["gcc", "-x", "c", "-std=c11"],
                                      ["g++", "-x", "c++", "-std=c++17"]])
@pytest.mark.parametrize("header", ["tritonserver.h", "tritonbackend.h"])
def test_header_compiles_alone(compiler, header):
    done = subprocess.run(
        [*compiler, "-Wall", "-Wextra", "-pedantic", "-Werror",
         "-fsyntax-only", "-I", ROOT / "core/include", "-"],
        input=f'#include "triton/core/{header}"\n', text=True,
        capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_core_without_arguments_says_what_it_needs():
    done = subprocess.run([BUILD / "inference-core"], capture_output=True,
                          text=True, timeout=20, check=False,
                          stdin=subprocess.DEVNULL)
    assert done.returncode not in (0, -6, -11)
    assert done.stdout + done.stderr


@pytest.mark.parametrize("arguments", [["nonsense"], ["journal", "nonsense"],
                                       ["--help"]])
def test_an_unknown_fuzzer_is_named(arguments):
    done = subprocess.run(["sh", "t/fuzz.sh", *arguments], cwd=ROOT,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == ("fuzz.sh: there is no fuzzer "
                           f'"{arguments[-1]}" in t/fuzz\n')
