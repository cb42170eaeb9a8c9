"""Which node gets a request, by what the nodes say of themselves."""

import contextlib
import socket
import threading

import pytest

from lib import process
from lib.nodes import PROXY, balancer
from lib.server import SLOW, free_port


def ask(server, count, path="/v2/models/m/infer"):
    answers = [server.post(path, b"{}").status for _ in range(count)]
    return answers


def settle(*nodes):
    for node in nodes:
        assert process.wait_until(node.probed(3), 10 * SLOW)


def counts(*nodes):
    found = [len(n.received) for n in nodes]
    for n in nodes:
        n.received.clear()
    return found


def test_the_shortest_queue_gets_it(make_server, make_nodes):
    a, b, c = make_nodes(50, 3, 50)
    server = balancer(make_server, [n.port for n in (a, b, c)])
    settle(a, b, c)
    assert ask(server, 20) == [200] * 20
    assert counts(a, b, c) == [0, 20, 0]
    a.set_queue(0)
    settle(a)
    assert ask(server, 20) == [200] * 20
    assert counts(a, b, c) == [20, 0, 0]


def test_all_workers_know_it(make_server, make_nodes):
    """Each node is asked by one of them; connections come to all four."""
    a, b = make_nodes(50, 0)
    server = balancer(make_server, [a.port, b.port], workers=4)
    settle(a, b)
    assert ask(server, 100) == [200] * 100
    assert counts(a, b) == [0, 100]


def test_own_requests_count_between_reports(make_server, make_nodes):
    """A report of an hour ago does not draw everything to one node."""
    a, b = make_nodes(0, 2)
    server = balancer(make_server, [a.port, b.port], "queue interval=1h",
                      workers=2)
    for node in (a, b):
        assert process.wait_until(lambda: node.probes, 10 * SLOW)
        assert process.wait_until(
            lambda: server.log_text().count("is ready") == 2, 10 * SLOW)
        node.gate.clear()
    threads = [threading.Thread(target=ask, args=(server, 1))
               for _ in range(10)]
    for t in threads:
        t.start()
    assert process.wait_until(
        lambda: len(a.received) + len(b.received) == 10, 10 * SLOW)
    assert sorted(counts(a, b)) == [4, 6]
    a.gate.set()
    b.gate.set()
    for t in threads:
        t.join()


def test_a_weight_divides_the_load(make_server, make_nodes):
    a, b = make_nodes(5, 10)
    server = balancer(make_server, [a.port, b.port])
    text = server.conf.read_text()
    server.conf.write_text(text.replace(f":{b.port};", f":{b.port} weight=3;"))
    server.reload()
    settle(a, b)
    assert ask(server, 20) == [200] * 20
    assert counts(a, b) == [0, 20]


def test_equal_ones_share(make_server, make_nodes):
    a, b = make_nodes(7, 7)
    server = balancer(make_server, [a.port, b.port], "queue interval=1h")
    assert process.wait_until(
        lambda: server.log_text().count("is ready") == 2, 10 * SLOW)
    assert ask(server, 60) == [200] * 60
    assert min(counts(a, b)) > 10


def test_a_node_that_is_not_ready_is_left_out(make_server, make_nodes):
    a, b = make_nodes(0, 9)
    server = balancer(make_server, [a.port, b.port])
    settle(a, b)
    a.ready = False
    settle(a)
    assert ask(server, 10) == [200] * 10
    assert counts(a, b) == [0, 10]
    assert (f'node 127.0.0.1:{a.port} of upstream "nodes" is not ready (it '
            'answers 503)') in server.log_text()
    a.ready = True
    settle(a)
    assert ask(server, 10) == [200] * 10
    assert counts(a, b) == [10, 0]


def test_none_is_ready(make_server, make_nodes):
    a, b = make_nodes(0, 0)
    server = balancer(make_server, [a.port, b.port])
    a.ready = b.ready = False
    settle(a, b)
    assert ask(server, 3) == [502] * 3
    assert counts(a, b) == [0, 0]
    assert "no live upstreams" in server.log_text()
    b.ready = True
    settle(b)
    assert ask(server, 3) == [200] * 3


def test_one_alone_is_left_out_too(make_server, make_nodes):
    (a,) = make_nodes(0)
    server = balancer(make_server, [a.port])
    a.ready = False
    settle(a)
    assert ask(server, 2) == [502] * 2
    a.ready = True
    settle(a)
    assert ask(server, 2) == [200] * 2


def test_a_node_that_is_down_is_left_out(make_server, make_nodes):
    (a,) = make_nodes(30)
    port = free_port()
    server = balancer(make_server, [port, a.port])
    said = (f'node 127.0.0.1:{port} of upstream "nodes" cannot be connected to'
            ': it gets no requests')
    assert process.wait_until(lambda: said in server.log_text(), 10 * SLOW)
    settle(a)
    assert ask(server, 10) == [200] * 10
    assert server.log_text().count(said) == 1       # told once
    assert "while connecting to upstream" not in server.log_text()


def test_a_node_that_does_not_answer_is_left_out(make_server, make_nodes):
    (a,) = make_nodes(30)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        server = balancer(make_server, [port, a.port])
        said = (f'node 127.0.0.1:{port} of upstream "nodes" does not answer: '
                'it gets no requests')
        assert process.wait_until(lambda: said in server.log_text(),
                                  20 * SLOW)
        settle(a)
        assert ask(server, 10) == [200] * 10
        assert len(a.received) == 10


LIES = ["-1", "1000001", "99999999999999999999999", "0x10", "", "many", "3.5",
        "7;", "１"]


@pytest.mark.parametrize("queue", LIES)
def test_a_lie_counts_as_unknown(make_server, make_nodes, queue):
    """The node is named once, and serves by what the balancer itself has
    there."""
    a, b = make_nodes(0, 5)
    a.report = f"TEXT named_metrics.queue_depth={queue}" \
        .encode().decode("latin-1")
    server = balancer(make_server, [a.port, b.port])
    settle(a, b)
    settle(a)
    assert ask(server, 5) == [200] * 5
    assert counts(a, b) == [5, 0]
    said = (f'node 127.0.0.1:{a.port} of upstream "nodes" reports an '
            'impossible queue')
    assert server.log_text().count(said) == 1
    a.set_queue(1000)
    settle(a)
    assert ask(server, 5) == [200] * 5
    assert counts(a, b) == [0, 5]


@pytest.mark.parametrize("raw", [
    b"\0\0\6\4\0\0\0\0\0\0\3\0\0\0\x80", b"SSH-2.0-x\r\n",
    b"HTTP/2 200\r\n\r\n",
    b"HTTP/1.1 2000 OK\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/1.1 200",
    b"HTTP/1.1 200 OK\r\nX: " + b"y" * 8192 + b"\r\n\r\n"])
def test_garbage_counts_as_unknown(make_server, make_nodes, raw):
    a, b = make_nodes(0, 5)
    a.raw = raw
    server = balancer(make_server, [a.port, b.port])
    settle(a, b)
    settle(a)
    assert ask(server, 5) == [200] * 5
    assert counts(a, b) == [5, 0]
    said = (f'node 127.0.0.1:{a.port} of upstream "nodes" answers no HTTP/1 '
            '("port=" of "inference_balance" names another port)')
    assert server.log_text().count(said) == 1


def test_no_report_is_no_lie(make_server, make_nodes):
    """A tritonserver, say."""
    a, b = make_nodes(None, 5)
    server = balancer(make_server, [a.port, b.port])
    settle(a, b)
    assert ask(server, 5) == [200] * 5
    assert counts(a, b) == [5, 0]
    assert "unknown" not in server.log_text()


def test_an_old_report_ages(make_server, make_nodes):
    """A node that can be asked no more about its queue: the balancer goes by
    its own requests."""
    a, b = make_nodes(100, 5)
    server = balancer(make_server, [a.port, b.port])
    settle(a, b)
    assert ask(server, 5) == [200] * 5
    assert counts(a, b) == [0, 5]
    a.report = None
    settle(a)
    assert ask(server, 5) == [200] * 5
    assert counts(a, b) == [5, 0]


def test_a_reload_keeps_what_is_known(make_server, make_nodes):
    """Also where servers come and go."""
    a, b, c = make_nodes(50, 0, 60)
    server = balancer(make_server, [a.port, b.port])
    settle(a, b)
    text = server.conf.read_text()
    a.ready = False
    settle(a)
    server.conf.write_text(text.replace(f"127.0.0.1:{b.port};",
                                        f"127.0.0.1:{c.port};"))
    server.reload()
    settle(c)
    assert ask(server, 10) == [200] * 10
    assert counts(a, b, c) == [0, 0, 10]
    assert server.log_text().count(f"{a.port} of upstream \"nodes\" is not "
                                   "ready") == 1


def test_the_probe_says_what_it_wants(make_server, make_nodes):
    (a,) = make_nodes(0)
    balancer(make_server, [a.port])
    assert process.wait_until(lambda: a.probes, 10 * SLOW)
    assert a.probes[0] == {"Host": "nodes", "Connection": "close",
                           "Endpoint-Load-Metrics-Format": "text"}


def test_a_probe_has_a_port_of_its_own(make_server, make_nodes):
    """As nodes of gRPC need it, whose port speaks HTTP/2 alone."""
    a, b = make_nodes(0, 0)
    b.ready = False
    server = balancer(make_server, [a.port],
                      f"queue interval=20ms port={b.port}")
    settle(b)
    assert not a.probes
    assert ask(server, 1) == [502]
    b.ready = True
    settle(b)
    assert ask(server, 1) == [200]


def test_a_refused_request_goes_to_the_next(make_server, make_nodes):
    """Before a probe has noticed."""
    a, b = make_nodes(0, 5)
    server = balancer(make_server, [a.port, b.port], "queue interval=1h")
    assert process.wait_until(
        lambda: server.log_text().count("is ready") == 2, 10 * SLOW)
    a.stop()
    a.shutdown = a.server_close = lambda: None
    assert ask(server, 5) == [200] * 5
    assert len(b.received) == 5


def test_keepalive_behind_it(make_server, make_nodes):
    a, b = make_nodes(50, 0)
    server = balancer(make_server, [a.port, b.port],
                      more="        keepalive 4;\n", server=PROXY)
    settle(a, b)
    assert ask(server, 20) == [200] * 20
    assert counts(a, b) == [0, 20]


AGAIN = PROXY.replace("}", """\
    proxy_next_upstream error timeout non_idempotent;
        }""")


def test_a_kept_connection_of_the_only_node_is_closed(make_server, make_nodes):
    """nginx tries once more, on a new connection."""
    (a,) = make_nodes(0)
    a.closes_kept = True
    server = balancer(make_server, [a.port], more="        keepalive 4;\n",
                      server=AGAIN)
    settle(a)
    assert ask(server, 6) == [200] * 6
    assert counts(a) == [6]
    assert "prematurely closed" in server.log_text()


def test_a_lost_probe_changes_nothing(make_server, make_nodes):
    """Two in a row are a node that is down."""
    (a,) = make_nodes(0)
    server = balancer(make_server, [a.port])
    settle(a)
    a.to_drop = 1
    settle(a)
    said = f'node 127.0.0.1:{a.port} of upstream "nodes" closes the connection'
    assert said + ": it is asked again" in server.log_text()
    assert "it gets no requests" not in server.log_text()
    assert ask(server, 2) == [200] * 2
    a.to_drop = 2
    settle(a)
    assert process.wait_until(
        lambda: said + ": it gets no requests" in server.log_text(), 10 * SLOW)


def test_a_late_answer_changes_nothing(make_server, make_nodes):
    """One worker's probe hangs; what it brings is older than what another
    worker knows."""
    (a,) = make_nodes(0)
    server = balancer(make_server, [a.port], workers=2)
    settle(a)
    a.to_hold = 1
    assert process.wait_until(lambda: a.to_hold == 0, 10 * SLOW)
    settle(a)
    a.held.set()
    settle(a)
    assert "is not ready" not in server.log_text()
    assert ask(server, 5) == [200] * 5


def test_a_probe_does_not_hold_a_worker(make_server, make_nodes):
    """A reload ends the workers that wait for an answer, and no other one takes
    that for the node's silence."""
    (a,) = make_nodes(0)
    a.to_hold = 1
    server = balancer(make_server, [a.port], "queue interval=1h")
    assert process.wait_until(lambda: a.probes, 10 * SLOW)
    server.reload()
    assert process.wait_until(lambda: len(a.probes) == 2, 10 * SLOW)
    assert "does not answer" not in server.log_text()
    assert "open socket" not in server.log_text()


def test_what_the_balancer_lacks_is_no_fault_of_its_nodes(make_server,
                                                          make_nodes):
    """Half requests of a client take all connections."""
    a, b = make_nodes(0, 5)
    server = balancer(make_server, [a.port, b.port], connections=24,
                      allow_alarms=["worker_connections are not enough"])
    settle(a, b)

    def lacks():
        return server.log_text().count("worker_connections are not enough")

    with contextlib.ExitStack() as clients:
        for _ in range(10):
            # nginx closes those that it takes before they have sent anything
            before = lacks()
            for _ in range(20):
                c = clients.enter_context(
                    socket.create_connection(("127.0.0.1", server.port)))
                with contextlib.suppress(OSError):
                    c.sendall(b"POST / HTTP/1.1\r\nHost: x\r\n")
            # more than these clients: its probes
            if process.wait_until(lambda: lacks() > before + 60, 3 * SLOW):
                break
        assert lacks() > before + 60
        assert "it gets no requests" not in server.log_text()
        assert "cannot be connected to" not in server.log_text()
    settle(a, b)
    assert ask(server, 5) == [200] * 5
    assert counts(a, b) == [5, 0]


def test_more_servers_than_a_zone_holds(make_server, make_nodes):
    """Those of two configurations: nginx goes on, and the new ones get their
    entries when the old ones have been gone for a while."""
    a, b = make_nodes(0, 0)

    def servers(network):
        return "".join(f"        server 127.{network}.0.{i}:9 max_fails=0;\n"
                       for i in range(1, 201))

    server = balancer(make_server, [a.port], "queue interval=100ms",
                      more="        keepalive 4;\n")
    text = server.conf.read_text()
    first = f"        server 127.0.0.1:{a.port};\n"
    assert first in text
    settle(a)
    for network, port in ((1, a.port), (2, b.port)):
        server.conf.write_text(text.replace(
            first, servers(network) + f"        server 127.0.0.1:{port};\n"))
        server.reload()
        if network == 1:
            assert process.wait_until(
                lambda: "node 127.1.0.200:9 " in server.log_text(), 20 * SLOW)
    assert 'no room yet for server 127.2.0.' in server.log_text()
    assert process.wait_until(lambda: b.probes, 60 * SLOW)
    said = 'node 127.2.0.200:9 of upstream "nodes" cannot be connected to'
    assert process.wait_until(lambda: said in server.log_text(), 20 * SLOW)
    assert process.wait_until(lambda: set(ask(server, 3)) == {200}, 20 * SLOW)


def test_without_a_master_no_node_is_asked(make_server, make_nodes):
    """nginx frees the configuration at a reload, and a prober with it."""
    a, b = make_nodes(0, 0)
    server = balancer(make_server, [a.port, b.port], start=False)
    text = server.conf.read_text()
    server.conf.write_text("master_process off;\n" + text)
    server.start("")
    said = '"master_process off": nodes of upstream "nodes" are not asked'
    assert process.wait_until(lambda: said in server.log_text(), 10 * SLOW)
    assert ask(server, 4) == [200] * 4
    assert sum(counts(a, b)) == 4
    server.signal("HUP")        # after which nginx itself serves nothing
    assert process.wait_until(
        lambda: server.log_text().count('using the "epoll"') == 2, 10 * SLOW)
    assert server.process.poll() is None
    assert not a.probes
    assert not b.probes
