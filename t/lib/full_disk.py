"""A disk that fills up when a test says so, seen by a server's core alone."""

import pathlib
import subprocess

from lib.server import BUILD, ROOT, SANITIZER, sanitizer_runtime

SOURCE = ROOT / "t/preload/full_disk.c"
LIBRARY = BUILD / "t-preload/libfull_disk.so"


class FullDisk:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self._room = pathlib.Path(f"{folder}.room")
        if not LIBRARY.exists() \
                or LIBRARY.stat().st_mtime < SOURCE.stat().st_mtime:
            LIBRARY.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(
                ["gcc", "-std=gnu17", "-O1", "-Wall", "-Wextra", "-Werror",
                 "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", LIBRARY, SOURCE],
                check=True)

    def environment(self):
        """inference_env lines; a sanitizer's runtime must come first."""
        first = sanitizer_runtime(SANITIZER) + " " if SANITIZER else ""
        return [f'"LD_PRELOAD={first}{LIBRARY}"', f"FULL_DISK={self.folder}"]

    def fill(self, room=0):
        """So many bytes more may be written."""
        self._room.write_text(str(room))

    def clear(self):
        self._room.unlink(missing_ok=True)
