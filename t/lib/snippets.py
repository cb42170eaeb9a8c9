"""Snippets of conf.d with the ports and files of a test."""

import re

from lib.server import ROOT


def read(name, ports=None, switch_on=(), **files):
    """The text; ports: {number in the snippet: own}; switch_on: first words
    of commented lines; files: those of /etc/nginx-inference by name, "_" for
    the dot."""
    text = (ROOT / f"conf.d/{name}.conf").read_text(encoding="utf-8")
    for words in switch_on:
        text, count = re.subn(rf"# ({re.escape(words)}\b.*)", r"\1", text)
        assert count >= 1, words
    for number, own in (ports or {}).items():
        text, count = re.subn(rf"listen( +){number}\b",
                              rf"listen\g<1>127.0.0.1:{own}", text)
        assert count >= 1, number
        text = text.replace(f'=":{number}"', f'=":{own}"')
    for file, path in files.items():
        name = f"/etc/nginx-inference/{file.replace('_', '.')}"
        assert name in text
        text = text.replace(name, str(path))
    return text
