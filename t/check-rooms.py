#!/usr/bin/env python3
"""Checks that every #include goes the way design.md section 5 allows.

A room of core may include core/include, itself and the rooms below it;
ngx_module may include nginx, core/include, core/wire, core/proto and
core/base; a backend core/include/triton, backends/common and itself; nobody
includes t.
A foreign library's header is included by the files of one room at most.
The files of ngx_module, and those of core/repository, call each other in one
direction only; each of ngx_module includes the header of every function that
it calls;
no files include each other, in one room or across them.

And that each README stays short, its files are there, and the sources beside
it are named in it.
"""

import graphlib
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Lowest first: a room may include those before it.
ROOMS = ["base", "proto", "wire", "tensor", "model", "sched", "cache",
         "storage", "repository", "server", "abi", "service"]
NGX_MODULE = ["include", "wire", "proto", "base"]

# Files that may include a foreign library's header (paths relative to the
# root).
WRAPPED = {
    r"jansson\.h": ["core/proto", "backends/common", "ngx_module"],
    r"protobuf-c/.*|.*\.pb-c\.h": ["core", "ngx_module"],
    r"expat\.h": ["core/storage"],
    r"cuda.*\.h": ["core/tensor", "backends/onnxruntime"],
    r"onnxruntime.*\.h": ["backends/onnxruntime"],
    r"openvino/.*\.h": ["backends/openvino"],
    r"ngx_.*\.h|nginx\.h": ["ngx_module"],
}

# A README is read at a glance: the lines it may have, and their width.  The
# first one is the map of the whole.
README_LINES = 60
README_WIDTH = 120
SOURCE = re.compile(r"`([\w./-]+\.(?:cc?|h|py|sh|proto|cmake|map|lua))`")

# Directories whose README names each file that is compiled.
NAMED = ("core", "ngx_module", "backends", "tools")

# A function of a file in nginx's layout that others may call.
DEFINED = re.compile(r"^(?!static)\w[^\n]*\n(\w+)\(", re.M)
# A function of a header in nginx's layout.
DECLARED = re.compile(r"^\w[^\n;{]*\b(ngx_http_inference_\w+)\([^{;]*\);", re.M)
# Text that is no code; a string may hold the signs of a comment.
COMMENT = re.compile(
    r"""/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'""", re.S)
WORD = re.compile(r"\w+")

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')


def room_of(path):
    """'core/sched/queue.c' -> ('core', 'sched'); others: (directory, name)."""
    parts = path.split("/")
    return parts[0], parts[1] if len(parts) > 2 else ""


def is_os(path):
    """The part of base that nginx workers don't compile."""
    return path.startswith("core/base/os/")


def target_of(source, name):
    """The file of ours that an include names, from the root, or None."""
    include = ROOT / "core" / "include"
    for base in (ROOT, (ROOT / source).parent, include):
        file = base / name
        if file.is_file():
            return str(file.resolve().relative_to(ROOT))
    return None


def complaint(source, target):
    """Why source may not include target; None when it may."""
    top, room = room_of(source)
    to_top, to_room = room_of(target)

    if to_top == "t" and top != "t":
        return "nothing includes t"

    if top == "core":
        if to_top != "core":
            return f"core may not include {to_top}"
        if room == to_room == "base" and is_os(target) and not is_os(source):
            return "nginx workers compile base, without os"
        if to_room in ("include", room):
            return None
        if room == "include":
            return "core/include includes only itself"
        if room not in ROOMS or to_room not in ROOMS:
            return f"core/{to_room} is no room of design.md"
        if ROOMS.index(to_room) > ROOMS.index(room):
            return f"{to_room} lies above {room}"
        return None

    if top == "ngx_module":
        if to_top == "ngx_module":
            return None
        if to_top == "core" and to_room in NGX_MODULE and not is_os(target):
            return None
        return f"ngx_module may not include {to_top}/{to_room}"

    if top == "backends":
        if to_top == "backends" and to_room in ("common", room):
            return None
        if target.startswith("core/include/triton/"):
            return None
        return "a backend includes core/include/triton, common and itself"

    return None


def foreign_complaint(source, name):
    for pattern, allowed in WRAPPED.items():
        if re.fullmatch(pattern, name.split("/")[-1]) \
                or re.fullmatch(pattern, name):
            if not any(source.startswith(a + "/") for a in allowed):
                return f"{name} is wrapped by {', '.join(allowed)}"
    return None


def check(source):
    found = []
    text = (ROOT / source).read_text(encoding="utf-8", errors="replace")
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        name = match.group(2)
        target = target_of(source, name) if match.group(1) == '"' \
            or name.startswith("triton/") else None
        why = complaint(source, target) if target \
            else foreign_complaint(source, name)
        if why:
            found.append(f"{source}:{number}: {name}: {why}")
    return found


def included_by(source):
    """Our files that source includes."""
    text = (ROOT / source).read_text(encoding="utf-8", errors="replace")
    names = [m.group(2) for m in map(INCLUDE.match, text.splitlines()) if m]
    return {t for t in (target_of(source, n) for n in names) if t}


def circle(graph):
    """The nodes of one circle; empty: there is none."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def cycle_of_calls(directory):
    """Files of directory that call each other in a circle; empty: none.
    A call through a table of functions is none of the caller's file."""
    texts = {p.name: COMMENT.sub("", p.read_text(encoding="utf-8"))
             for p in (ROOT / directory).glob("*.c")}
    home = {name: file for file, text in texts.items()
            for name in DEFINED.findall(text)}
    calls = {file: {home[word] for word in set(WORD.findall(text))
                    if word in home} - {file}
             for file, text in texts.items()}
    return circle(calls)


def headers_not_included(directory):
    """Files that call a function without an include of its header; the first
    header, ngx_http_inference.h, comes with every other."""
    texts = {p.name: COMMENT.sub("", p.read_text(encoding="utf-8"))
             for p in (ROOT / directory).iterdir() if p.suffix in (".c", ".h")}
    home = {name: file for file, text in texts.items() if file.endswith(".h")
            for name in DECLARED.findall(text)}
    found = []
    for file in sorted(texts):
        needed = {home[word] for word in set(WORD.findall(texts[file]))
                  if word in home} - {file, "ngx_http_inference.h"}
        has = {pathlib.Path(f).name for f in included_by(f"{directory}/{file}")}
        found += [f"{directory}/{file}: it calls functions of {header}"
                  for header in sorted(needed - has)]
    return found


def every_file():
    """All paths of the tree but what was built, each with a slash before."""
    found = []
    for directory, inner, names in os.walk(ROOT):
        inner[:] = [f for f in inner if not f.startswith(("build", ".git"))]
        found += [f"{directory[len(str(ROOT)):]}/{name}" for name in names]
    return sorted(found)


def is_there(name, files):
    """name is as documents write it: from any directory above the file, and a
    file of the nginx module by its last word."""
    base = name.removeprefix("..._")
    ends = ("/" + base, "/ngx_module/ngx_http_inference_" + base)
    return "NAME" in name or any(f.endswith(ends) for f in files)


def unnamed(path, text):
    """The files beside a README that it does not name; their headers count
    as they do."""
    return [file.name for file in sorted(path.parent.iterdir())
            if file.suffix in (".c", ".cc") and not re.search(
                rf"`{file.stem.removeprefix('ngx_http_inference_')}"
                r"\.(?:cc?|h)`", text)]


def check_document(path, files):
    found = []
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    name = path.relative_to(ROOT)

    if path.name == "README.md" and name.parts[0] in NAMED:
        found += [f"{name}: {file} is not in it"
                  for file in unnamed(path, text)]

    if path.name == "README.md" and path.parent != ROOT:
        if len(lines) > README_LINES:
            found.append(f"{name}: {len(lines)} lines, {README_LINES} are"
                         " enough")
        for number, line in enumerate(lines, 1):
            if len(line) > README_WIDTH and not line.startswith(("|", "    ")):
                found.append(f"{name}:{number}: {len(line)} columns")

    for number, line in enumerate(lines, 1):
        for source in SOURCE.findall(line):
            if not is_there(source.removeprefix("../"), files):
                found.append(f"{name}:{number}: there is no {source}")
    return found


def main():
    sources = sorted(
        str(p.relative_to(ROOT))
        for top in ("core", "ngx_module", "backends")
        for p in (ROOT / top).rglob("*")
        if p.suffix in (".c", ".h", ".cc"))
    if not sources:
        print("rooms: no sources found", file=sys.stderr)
        return 1
    found = [line for source in sources for line in check(source)]
    for room in ("ngx_module", "core/repository"):
        cycle = cycle_of_calls(room)
        if cycle:
            found.append(f"{room} calls in a circle: " + " <- ".join(cycle))
    found += headers_not_included("ngx_module")
    cycle = circle({source: included_by(source) for source in sources})
    if cycle:
        found.append("files include each other: " + " <- ".join(cycle))
    files = every_file()
    pages = [ROOT / f[1:] for f in files if f.endswith(".md")]
    wrong = [line for page in pages for line in check_document(page, files)]
    for line in found + wrong:
        print(line, file=sys.stderr)
    print(f"rooms: {len(sources)} files, {len(found)} wrong includes or calls;"
          f" {len(pages)} documents, {len(wrong)} faults")
    return 1 if found or wrong else 0


sys.exit(main())
