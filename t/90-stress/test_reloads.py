"""Reloads and binary upgrades, with and without a way back, under the load of
every protocol with bodies of 1 KiB and 1 MiB: the core stays, and no request
that nginx has read fails.

INF_RELOADS=100 does a hundred reloads and ten upgrades (`make test-reloads`);
by itself the test does ten and two.
"""

import os

from lib import crowd, process, upgrade
from lib.crowd import Crowd
from lib.server import SLOW

RELOADS = int(os.environ.get("INF_RELOADS", "10"))
UPGRADES = max(RELOADS // 10, 2)


def reload(server):
    old = set(server.workers())
    server.signal("HUP")
    assert process.wait_until(
        lambda: set(server.workers()) - old, 60 * SLOW), "no new workers"


def test_reloads_and_upgrades_under_load(make_server):
    server = make_server(crowd.fill, daemon=True, workers=2, http2=True,
                         connections=1000, http=crowd.HTTP,
                         server=crowd.SERVER,
                         parts="health metadata config infer generate")
    core = server.core()
    with Crowd(server) as clients:
        for n in range(UPGRADES):
            for _ in range(RELOADS // UPGRADES):
                clients.wait_for_more()
                reload(server)
            clients.wait_for_more()
            old, new = upgrade.begin(server)
            clients.wait_for_more()
            if n % 2 == 0:
                upgrade.finish(server, old, new)
            else:
                upgrade.take_back(server, old, new)
        clients.wait_for_more(2)
    unread = clients.check()
    print(f"{RELOADS} reloads, {UPGRADES} upgrades: answered "
          f"{dict(clients.answered)}, {unread} that nginx has not read")
    assert server.core() == core
    assert process.wait_until(
        lambda: len(server.workers()) == 2, 120 * SLOW), server.workers()
