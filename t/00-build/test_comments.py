"""Every prototype of a header has a comment, or shares its group's."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lib import c_source  # noqa: E402
from lib.server import ROOT  # noqa: E402

HEADERS = ["core", "ngx_module", "backends/common", "tools"]

# Their comments come with the work that is under way in these rooms.
UNDER_WAY = ("core/repository/", "core/storage/")


def files(folders, suffixes):
    """(path from the root, text)"""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            name = str(path.relative_to(ROOT))
            if path.suffix in suffixes and not name.startswith(UNDER_WAY):
                yield name, path.read_text()


def test_prototypes():
    found = [(file, line, name, told)
             for file, text in files(HEADERS, (".h",))
             for name, line, told in c_source.prototypes(text)]
    assert len(found) > 1000
    assert [f"{file}:{line}: {name}" for file, line, name, told in found
            if not told] == []
