"""The decisions of reconcile.c are pure: no lock, no clock, no memory, no I/O.

All functions of core that its functions reach are followed, by their names;
functions that a table or a caller hands in are not.
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lib import c_source  # noqa: E402
from lib.server import ROOT  # noqa: E402

FILE = "core/repository/reconcile.c"
OUTSIDE = {"strcmp", "strlen"}      # of the C library

FUNCTION = re.compile(r"^(?!typedef|extern|#)([A-Za-z_][\w \t*()]*)\n"
                      r"(\w+)\([^;{}]*\)[^;{}]*\{", re.M)
MACRO = re.compile(r"^#define (\w+)\(", re.M)
CALL = re.compile(r"(?<![\w.>])(\w+)\(")
WORDS = {"if", "while", "for", "switch", "return", "sizeof", "UINT64_C"}


def functions(files):
    """(file or "" if others see it, name): (file, names it calls)"""
    macros = {name for _, text in files for name in MACRO.findall(text)}
    found = {}
    for path, text in files:
        code = c_source.without_comments(text)
        for match in FUNCTION.finditer(code):
            body = code[match.end():c_source.closed_by(code, match.end())]
            own = "static" in match[1] and path.endswith(".c")
            found[path if own else "", match[2]] = (
                path, set(CALL.findall(body)) - WORDS - macros)
    return found


def outside(files, file):
    """Names of no function of files, and one that calls each of them."""
    known = functions(files)
    left = [key for key, (path, _) in known.items() if path == file]
    seen, found = set(left), {}
    while left:
        path, calls = known[caller := left.pop()]
        for name in calls:
            key = (path, name) if (path, name) in known else ("", name)
            if key not in known:
                found[name] = caller[1]
            elif key not in seen:
                seen.add(key)
                left.append(key)
    return found


def test_reconcile_is_pure():
    files = [(str(path.relative_to(ROOT)), path.read_text())
             for path in sorted((ROOT / "core").rglob("*.[ch]"))]
    found = outside(files, FILE)
    assert "strcmp" in found
    assert {name: by for name, by in found.items() if name not in OUTSIDE} \
        == {}, "outside of core, and the function that calls it"


def test_what_a_function_reaches_is_found():
    files = [
        ("core/a.c", "void\na(void)\n{\n    b(c());\n    p->ops->d();\n}\n"),
        ("core/b.h", "#define M(x) x\n\nstatic inline int\nb(int x)\n{\n"
         "    return e(M(x));\n}\n"),
        ("core/c.c", "static int\ne(int x)\n{\n    return x;\n}\n\n"
         "int\nc(void)\n{\n    /* time() */\n    return e(read());\n}\n"),
    ]
    assert outside(files, "core/a.c") == {"e": "b", "read": "c"}
