"""The C ABI: what the headers declare, what the library exports.

The tables of the reference are compared when they are there: in INF_SHARED,
or in ../shared beside the repository.  The list of exports is committed;
`python3 t/00-build/test_abi.py` (with INF_BUILD) writes it anew.
"""

import csv
import os
import pathlib
import re
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lib.server import BUILD, ROOT  # noqa: E402

HEADERS = ROOT / "core/include/triton/core"
NAMES = ["tritonserver.h", "tritonbackend.h", "tritoncache.h",
         "tritonrepoagent.h"]
EXPORTS = pathlib.Path(__file__).resolve().parent / "abi-exports.txt"
TABLES = pathlib.Path(os.environ.get("INF_SHARED", ROOT.parent / "shared")) \
    / "reference"

PRIVATE = {"inf_core_main", "inf_memory_file", "inf_memory_file_ended",
           "inf_outputs_are_cached"}
COMPILERS = {"c17": ["gcc", "-x", "c", "-std=c17"],
             "c++17": ["g++", "-x", "c++", "-std=c++17"]}

DECLARED = re.compile(
    r"^TRITON[A-Z]+_(DECLSPEC|ISPEC)\s[^;(]*?\b(TRITON\w+)\(", re.M)
CALLBACK = re.compile(r"^typedef [^;(]*\(\*(TRITON\w+)\)\(", re.M)
VALUE = re.compile(r"^\s+(TRITON[A-Z]+_[A-Z0-9_]+)\s*=", re.M)


def text_of(header):
    return (HEADERS / header).read_text()


def declared(mark):
    """The functions that the headers mark DECLSPEC (core) or ISPEC."""
    return {name for header in NAMES
            for kind, name in DECLARED.findall(text_of(header))
            if kind == mark}


def exported():
    out = subprocess.run(
        ["nm", "-D", "--defined-only", BUILD / "libtritonserver.so"],
        capture_output=True, text=True, check=True).stdout
    symbols = [line.split()[-2:] for line in out.splitlines()]
    # a version node is listed as an absolute symbol of its own
    return {name.split("@")[0] for kind, name in symbols if kind != "A"}


def committed():
    return {line.strip() for line in EXPORTS.read_text().splitlines()
            if line.strip() and not line.startswith("#")}


def compile_alone(compiler, source):
    done = subprocess.run(
        [*COMPILERS[compiler], "-Wall", "-Wextra", "-Wpedantic", "-Werror",
         "-fsyntax-only", "-I", ROOT / "core/include", "-"],
        input=source, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]


# ---- the library

def test_library_exports_what_the_list_says():
    have, listed = exported(), committed()
    assert not listed - have, "no longer exported"
    assert not have - listed, "exported, but not in abi-exports.txt"


def test_nothing_but_the_abi_is_exported():
    extra = exported() - declared("DECLSPEC") - PRIVATE
    assert not extra


def test_no_entry_point_of_a_plug_in_is_defined():
    entries = declared("ISPEC")
    assert len(entries) == 23
    assert not entries & exported()


def test_functions_not_yet_exported(capsys):
    """Prints them; fails when the list of exports hides a loss."""
    functions = declared("DECLSPEC")
    assert len(functions) == 283
    missing = sorted(functions - exported())
    with capsys.disabled():
        print(f"\nABI: {len(functions) - len(missing)} of {len(functions)}"
              " functions are exported")
        for name in missing:
            print(f"ABI: not yet exported: {name}")
    assert not set(missing) & committed()


# ---- the headers

@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("header", NAMES)
def test_header_is_valid_alone(header, compiler):
    compile_alone(compiler, f'#include "triton/core/{header}"\n')


@pytest.mark.parametrize("header", NAMES)
def test_every_function_is_documented(header):
    lines = text_of(header).splitlines()
    starts = re.compile(r"TRITON[A-Z]+_(DECLSPEC|ISPEC) |typedef .*\(\*|"
                        r"typedef TRITONSERVER_Error \*$")
    bare = [line for before, line in zip(lines, lines[1:])
            if starts.match(line) and not before.endswith("*/")]
    assert not bare
    assert not [line for line in lines if len(line) > 80]


# ---- the tables

def table(name):
    with open(TABLES / name, newline="") as f:
        return list(csv.DictReader(f, delimiter="\t",
                                   quoting=csv.QUOTE_NONE))


def includes():
    return "".join(f'#include "triton/core/{h}"\n' for h in NAMES)


def function_source():
    """Each declaration, assigned to a pointer of the table's type."""
    lines = [includes()]
    for row in table("c-api-functions.tsv"):
        name, parameters = row["name"], row["parameters"]
        pointer = f"{row['return_type']} (*as_{name})({parameters})"
        if row["role"] == "callback typedef":
            lines.append(f"extern {name} a_{name}; extern {pointer};\n"
                         f"void set_{name}(void);\n"
                         f"void set_{name}(void)"
                         f" {{ as_{name} = a_{name}; }}\n")
        else:
            lines.append(f"extern {pointer};\nvoid set_{name}(void);\n"
                         f"void set_{name}(void) {{ as_{name} = {name}; }}\n")
    return "".join(lines)


def value_source(compiler):
    check = "static_assert" if compiler == "c++17" else "_Static_assert"
    lines = [includes()]
    for row in table("c-api-enums.tsv"):
        lines.append(f'{check}({row["name"]} == {row["value"]},'
                     f' "{row["name"]}");\n')
        if row["sizeof_type"] != "-":
            lines.append(f'{check}(sizeof({row["type"]}) =='
                         f' {row["sizeof_type"]}, "{row["type"]}");\n')
    return "".join(lines)


if TABLES.is_dir():
    @pytest.mark.parametrize("compiler", COMPILERS)
    def test_functions_have_the_types_of_the_table(compiler):
        compile_alone(compiler, function_source())

    @pytest.mark.parametrize("compiler", COMPILERS)
    def test_values_are_those_of_the_table(compiler):
        compile_alone(compiler, value_source(compiler))

    def test_headers_declare_what_the_table_lists():
        rows = table("c-api-functions.tsv")
        by_role = {role: {r["name"] for r in rows if r["role"] == role}
                   for role in ("exported by core", "exported by plugin",
                                "callback typedef")}
        callbacks = {name for header in NAMES
                     for name in CALLBACK.findall(
                         text_of(header).replace("\n(*", "(*"))}
        assert len(rows) == sum(len(names) for names in by_role.values())
        assert declared("DECLSPEC") == by_role["exported by core"]
        assert declared("ISPEC") == by_role["exported by plugin"]
        assert callbacks == by_role["callback typedef"]

    def test_headers_have_the_values_of_the_table():
        listed = {r["name"] for r in table("c-api-enums.tsv")
                  if r["type"] != "#define"}
        values = {name for header in NAMES
                  for name in VALUE.findall(text_of(header))}
        assert values == listed


if __name__ == "__main__":
    EXPORTS.write_text(
        "# The exports of libtritonserver.so, checked by test_abi.py, which\n"
        "# also writes this list: python3 t/00-build/test_abi.py\n"
        + "".join(f"{name}\n" for name in sorted(exported())))
