"""docs/directives.md has every directive and variable of the module, once."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from lib.server import ROOT  # noqa: E402

PAGE = (ROOT / "docs/directives.md").read_text()
MODULE = ROOT / "ngx_module"
ENTRY = re.compile(r'\{ ngx_string\("(\w+)"\)')


def table(source, name):
    """The strings that the rows of an array begin with."""
    text = (MODULE / f"ngx_http_inference_{source}.c").read_text()
    start = re.search(rf"\b{name}\[\]\s*=\s*\{{", text).end()
    return ENTRY.findall(text[start:text.index("\n};", start)])


def rows(pattern):
    """What it finds in the first cells of the page's tables."""
    return [found for line in PAGE.splitlines() if line.startswith("| `")
            for found in re.findall(pattern, line.split(" | ")[0])]


def test_every_directive_has_one_row():
    commands = table("module", "ngx_http_inference_commands")
    assert len(commands) > 30
    assert sorted(rows(r"`(inference\w*)`")) == sorted(commands)


def test_every_variable_has_one_row():
    variables = table("variables", "ngx_http_inference_vars")
    assert len(variables) > 10
    assert sorted(rows(r"`\$(\w+)`")) == sorted(variables)
