"""A disk that fills up when a test says so, seen by a server's core alone."""

import pathlib

from lib import preload


class FullDisk:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self._room = pathlib.Path(f"{folder}.room")

    def environment(self):
        """inference_env lines."""
        return [preload.environment("full_disk"), f"FULL_DISK={self.folder}"]

    def fill(self, room=0):
        """So many bytes more may be written."""
        self._room.write_text(str(room))

    def clear(self):
        self._room.unlink(missing_ok=True)
