#!/usr/bin/env python3
"""Runs clang's thread-safety analysis over core: make locks.

    t/locks.py [BUILD]      build directory (build), for its compiler commands

Functions say in their prototypes which lock they need, take or give up
(core/base/lock.h).  The analysis knows a lock by the expression that names it:
where a function reaches one lock by two names, its prototype says nothing and
its name ends in _locked all the same.
"""

import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORE = ROOT / "core"


def sources(build):
    """Each source file of core with its include and language options."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if path.suffix == ".c" and path.is_relative_to(CORE):
            options = [word for word in shlex.split(entry["command"])
                       if word.startswith(("-I", "-D", "-std"))]
            found[path] = (entry["directory"], options)
    return found


def analyse(path, directory, options):
    """The output of the analysis, as text; "": nothing."""
    done = subprocess.run(
        ["clang", "-fsyntax-only", "-Wno-everything", "-Wthread-safety",
         "-Werror", *options, str(path)], cwd=directory, capture_output=True,
        text=True)
    return done.stderr if done.returncode != 0 else ""


def main():
    build = ROOT / (sys.argv[1] if len(sys.argv) > 1 else "build")
    found = sources(build)
    if not found:
        sys.exit(f"locks: {build} has no commands for core's sources")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        texts = list(pool.map(lambda path: analyse(path, *found[path]),
                              found))
    print("".join(texts), end="")
    if any(texts):
        sys.exit(f"locks: {sum(map(bool, texts))} of {len(found)} files "
                 "break what a prototype says of locks")
    print(f"locks: {len(found)} files")


if __name__ == "__main__":
    main()
