"""Servers with `backup` get requests when no other one can take them."""

import threading

import pytest

from lib import process
from lib.nodes import balancer
from lib.server import SLOW, free_port


def backups(*nodes):
    return "".join(f"        server 127.0.0.1:{n.port} backup;\n"
                   for n in nodes)


def settle(*nodes):
    for node in nodes:
        assert process.wait_until(node.probed(3), 10 * SLOW)


def ask(server, count=1, id=""):
    return [server.post("/v2/models/m/infer", b"{}",
                        {"X-Sequence-Id": str(id)}).status
            for _ in range(count)]


def counts(*nodes):
    found = [len(n.received) for n in nodes]
    for n in nodes:
        n.received.clear()
    return found


@pytest.mark.parametrize("zone", ["", "        zone nodes 1m;\n"])
def test_only_while_no_other_is_ready(make_server, make_nodes, zone):
    a, b, c, d = make_nodes(50, 60, 9, 1)
    server = balancer(make_server, [a.port, b.port],
                      more=backups(c, d) + zone)
    settle(a, b, c, d)
    assert ask(server, 10) == [200] * 10
    assert counts(a, b, c, d) == [10, 0, 0, 0]
    a.ready = False
    settle(a)
    assert ask(server, 10) == [200] * 10
    assert counts(a, b, c, d) == [0, 10, 0, 0]
    b.ready = False
    settle(b)
    assert ask(server, 10) == [200] * 10
    assert counts(a, b, c, d) == [0, 0, 0, 10]      # the shorter queue
    d.ready = False
    settle(d)
    assert ask(server, 10) == [200] * 10
    assert counts(a, b, c, d) == [0, 0, 10, 0]
    c.ready = False
    settle(c)
    assert ask(server, 2) == [502] * 2
    a.ready = True
    settle(a)
    assert ask(server, 10) == [200] * 10
    assert counts(a, b, c, d) == [10, 0, 0, 0]


def test_before_a_probe_has_noticed(make_server, make_nodes):
    a, b, c = make_nodes(0, 0, 0)
    server = balancer(make_server, [a.port, b.port],
                      "queue interval=1h", more=backups(c))
    assert process.wait_until(
        lambda: server.log_text().count("is ready") == 3, 10 * SLOW)
    for node in (a, b):
        node.stop()
        node.shutdown = node.server_close = lambda: None
    assert ask(server, 5) == [200] * 5
    assert counts(c) == [5]


def test_when_the_others_are_full(make_server, make_nodes):
    a, b = make_nodes(0, 0)
    server = balancer(make_server, [], more=f"        server 127.0.0.1:{a.port}"
                      f" max_conns=1;\n{backups(b)}")
    settle(a, b)
    a.gate.clear()
    held = threading.Thread(target=ask, args=(server,))
    held.start()
    assert process.wait_until(lambda: a.received, 10 * SLOW)
    assert ask(server, 3) == [200] * 3
    assert counts(a, b) == [1, 3]
    a.gate.set()
    held.join()
    assert ask(server) == [200]
    assert counts(a, b) == [1, 0]


def test_a_sequence_stays_with_its_backup(make_server, make_nodes):
    a, b = make_nodes(0, 0)
    server = balancer(make_server, [a.port],
                      "queue interval=20ms sequence=$http_x_sequence_id",
                      more=backups(b))
    a.ready = False
    settle(a, b)
    assert ask(server, 2, id=5) == [200] * 2
    assert counts(a, b) == [0, 2]
    a.ready = True
    settle(a)
    assert ask(server, 2, id=5) == [200] * 2
    assert counts(a, b) == [0, 2]
    assert ask(server, 2, id=6) == [200] * 2
    assert counts(a, b) == [2, 0]

    b.stop()
    b.shutdown = b.server_close = lambda: None
    said = f'127.0.0.1:{b.port} of upstream "nodes" cannot be connected to: ' \
        "it gets no requests"
    assert process.wait_until(lambda: said in server.log_text(), 10 * SLOW)
    assert ask(server, 2, id=5) == [200] * 2
    assert counts(a) == [2]


def test_a_backup_that_is_down_is_asked(make_server, make_nodes):
    (a,) = make_nodes(0)
    port = free_port()
    server = balancer(make_server, [a.port],
                      more=f"        server 127.0.0.1:{port} backup;\n")
    said = f'node 127.0.0.1:{port} of upstream "nodes" cannot be connected to'
    assert process.wait_until(lambda: said in server.log_text(), 10 * SLOW)
    assert ask(server, 5) == [200] * 5
