"""The libraries of t/preload, compiled when they are first needed."""

import subprocess

from lib.server import BUILD, ROOT, SANITIZER, sanitizer_runtime


def library(name):
    source = ROOT / "t/preload" / f"{name}.c"
    target = BUILD / f"t-preload/lib{name}.so"
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["gcc", "-std=gnu17", "-O1", "-Wall", "-Wextra", "-Werror",
             "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", target, source],
            check=True)
    return target


def environment(name):
    """The inference_env of a core with that library; a sanitizer's runtime must
    come first."""
    first = sanitizer_runtime(SANITIZER) + " " if SANITIZER else ""
    return f'"LD_PRELOAD={first}{library(name)}"'
