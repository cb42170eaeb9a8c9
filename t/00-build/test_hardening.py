"""Flags of the compiler and the linker, read off their output.

Sanitized builds have checks of their own and are left out.
"""

import re
import shutil
import subprocess

import pytest

from lib.server import BUILD, MODULE, ROOT, SANITIZER

PROGRAMS = [BUILD / "inference-core", BUILD / "inference-server"]
LIBRARIES = [BUILD / "libtritonserver.so", MODULE,
             BUILD / "backends/identity/libtriton_identity.so",
             BUILD / "backends/onnxruntime/libtriton_onnxruntime.so",
             BUILD / "backends/openvino/libtriton_openvino.so",
             BUILD / "agents/checksum/libtritonrepoagent_checksum.so"]
EXAMPLES = ["backend-skeleton", "backends/repeat", "in-process"]

# Where a file of ours looks for libraries, besides the system's places.
RUNPATHS = {"inference-core": "$ORIGIN", "in-process": None,
            "libtriton_onnxruntime.so": "$ORIGIN"}

# The part of its command line that the compiler records; -D isn't in it.
COMPILER_FLAGS = ["-fstack-protector-strong", "-fstack-clash-protection", "-O"]

if SANITIZER:
    pytest.skip("sanitized builds have checks of their own",
                allow_module_level=True)


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True,
                          check=True).stdout


def check_sections(path, kind):
    text = output_of("readelf", "-hldW", path)
    assert re.search(r"^\s*Type:\s+DYN", text, re.M), "position-dependent"
    assert "GNU_RELRO" in text
    flags = re.search(r"\(FLAGS_1\).*", text)
    assert flags and "NOW" in flags[0], "symbols are bound lazily"
    assert ("PIE" in flags[0]) == (kind == "program")
    assert re.search(r"GNU_STACK.* RW ", text), "the stack is executable"
    assert not re.search(r"^\s+LOAD.* RWE ", text, re.M)
    assert "TEXTREL" not in text


def check_runpath(path):
    found = re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]",
                       output_of("readelf", "-dW", path))
    expected = RUNPATHS.get(path.name, "")
    if expected is not None:
        assert found == ([expected] if expected else [])


def check_compiler(path):
    """Of each source: what is said by a linked library's own is not ours."""
    producers = set(re.findall(
        r"DW_AT_producer\s*: (?:\(.*?\): )?(GNU C.*)",
        output_of("readelf", "--debug-dump=info", path)))
    assert producers
    for producer in producers:
        for flag in COMPILER_FLAGS:
            assert flag in producer, producer
        assert "-O0" not in producer


def imported(path):
    """nm marks what others define by U, or w where it may be missing."""
    return {line.split()[-1].split("@")[0] for line in
            output_of("nm", "-D", "--undefined-only", path).splitlines()}


@pytest.mark.parametrize("path", PROGRAMS + LIBRARIES,
                         ids=lambda path: path.name)
def test_artifact_is_hardened(path):
    check_sections(path, "program" if path in PROGRAMS else "library")
    check_runpath(path)
    check_compiler(path)


# inference-core is one call of the library's.
@pytest.mark.parametrize("path", PROGRAMS[1:] + LIBRARIES,
                         ids=lambda path: path.name)
def test_artifact_checks_stack_and_copies(path):
    symbols = imported(path)
    assert "__stack_chk_fail" in symbols
    assert {s for s in symbols if re.fullmatch(r"__\w+_chk", s)}


def test_copies_are_checked_at_the_third_level():
    """Which level it was shows in the commands alone."""
    cmake = (BUILD / "compile_commands.json").read_text()
    product = [line for line in cmake.splitlines()
               if '"command"' in line and re.search(
                   r"-c \S+/(core|backends)/\S+\.(c|cc)\"", line)]
    nginx = (BUILD / "nginx-src/objs/Makefile").read_text()
    flags = re.search(r"^CFLAGS = (.*)", nginx, re.M).group(1)
    assert len(product) > 100
    for command in product + [flags]:
        assert re.findall(r"-D_FORTIFY_SOURCE=(\d)", command)[-1:] == ["3"]


@pytest.mark.parametrize("path", [BUILD / "libtritonserver.so", MODULE],
                         ids=lambda path: path.name)
def test_asserts_are_on(path):
    assert "__assert_fail" in imported(path)


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_is_hardened(example, tmp_path):
    folder = tmp_path / "example"
    shutil.copytree(ROOT / "examples" / example, folder)
    before = set(folder.iterdir())
    subprocess.run(["make", "-s", "-C", folder,
                    f"INCLUDE={ROOT / 'core/include'}", f"LIB={BUILD}",
                    f"SOURCE={ROOT}"],
                   check=True)
    for made in set(folder.iterdir()) - before:
        check_sections(
            made, "library" if made.suffix == ".so" else "program")
        check_runpath(made)
        check_compiler(made)
