"""Servers with a snippet of conf.d in them."""

import pytest

from lib import models, snippets
from lib.server import free_port


@pytest.fixture
def snippet(make_server):
    """A function: (server, ports) with a snippet for http{}."""
    def start(name, *numbers, fill=models.standard_repository, switch_on=(),
              change=(), http="", files=None, **kw):
        ports = {n: free_port() for n in numbers}
        text = snippets.read(name, ports, switch_on, **(files or {}))
        for old, new in change:
            assert old in text, old
            text = text.replace(old, new)
        server = make_server(fill, http=f"{http}\n{text}", **kw)
        return server, [ports[n] for n in numbers]
    return start
