"""nginx is replaced by another binary: the core stays, and nobody notices."""

import re

import pytest

from lib import crowd, upgrade
from lib.crowd import Crowd


@pytest.fixture
def server(make_server):
    return make_server(crowd.fill, daemon=True, workers=2, http2=True,
                       connections=1000,
                       http=crowd.HTTP, server=crowd.SERVER,
                       allow_alarms=["exited on signal 9"],
                       parts="health metadata config infer generate")


def test_an_upgrade_under_load(server):
    core, first = server.core(), server.process.pid
    with Crowd(server) as clients:
        clients.wait_for_more()
        old, new = upgrade.begin(server)
        clients.wait_for_more()
        upgrade.finish(server, old, new)
        clients.wait_for_more(2)
    clients.check()
    assert server.process.pid != first
    assert server.core() == core
    server.end_core()                   # the new supervisor watches
    assert server.wait_for("/v2/models/id_uint8/ready")


def test_an_upgrade_that_is_taken_back_under_load(server):
    core, first = server.core(), server.process.pid
    with Crowd(server) as clients:
        clients.wait_for_more()
        old, new = upgrade.begin(server)
        clients.wait_for_more()
        upgrade.take_back(server, old, new)
        clients.wait_for_more(2)
    clients.check()
    assert server.process.pid == first
    assert server.core() == core
    server.end_core()                   # the old supervisor watches
    assert server.wait_for("/v2/models/id_uint8/ready")


def test_a_core_that_dies_amidst_an_upgrade_is_followed_by_one(server):
    """Two supervisors watch, and one of them starts it."""
    old, new = upgrade.begin(server)
    server.end_core()
    assert server.wait_for("/v2/models/id_uint8/ready")
    second = server.core()
    upgrade.finish(server, old, new)
    assert server.core() == second
    # a core that finds the lease taken has ended before it is one
    assert len(re.findall(r"core \d+ starts\n", server.log_text())) == 2
