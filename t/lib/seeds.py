"""Configuration snippets of the documents that the project started from.

They lie beside the repository (INF_SHARED, else ../shared) and need not be
there.
"""

import os
import pathlib
import re

from lib.server import ROOT

FOLDER = pathlib.Path(os.environ.get(
    "INF_SHARED", ROOT.parent / "shared")) / "seeds"
FIELD = re.compile(
    r"(name|platform|backend|max_batch_size|input|output|instance_group"
    r"|dynamic_batching|sequence_batching|ensemble_scheduling|optimization"
    r"|version_policy|model_warmup|parameters|response_cache"
    r"|model_repository_agents|batch_input|batch_output)\s*(:|\[|\{)")


def snippets():
    """[(place, text)] of all configurations in all documents."""
    found = []
    for path in sorted(FOLDER.glob("*")) if FOLDER.is_dir() else []:
        lines = path.read_text(encoding="utf-8").splitlines()
        for start, text in _blocks(lines):
            if FIELD.match(text.lstrip()):
                found.append((f"{path.name[:3]}:{start + 1}", text))
    return found


def _blocks(lines):
    """Fenced text, and text that begins a paragraph and ends its brackets."""
    at = 0
    while at < len(lines):
        if lines[at].strip().startswith("```"):
            end = at + 1
            while end < len(lines) and not lines[end].strip().startswith(
                    "```"):
                end += 1
            yield at + 1, "\n".join(lines[at + 1:end]) + "\n"
            at = end + 1
        elif FIELD.match(lines[at].strip()) and re.search(
                r"[\[{]\s*$", lines[at]):
            end, depth = at, 0
            while end < len(lines):
                depth += len(re.findall(r"[\[{]", lines[end]))
                depth -= len(re.findall(r"[\]}]", lines[end]))
                end += 1
                if depth <= 0:
                    break
            yield at, "\n".join(lines[at:end]) + "\n"
            at = end
        else:
            at += 1
