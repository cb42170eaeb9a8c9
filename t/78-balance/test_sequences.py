"""Sequences stay with their node, and are lost with it: nodes of our own with
the sequences backend behind a balancer."""

import itertools
import json
import os
import pathlib
import shutil
import signal
import tempfile
import threading
import zlib

import pytest

from lib import process
from lib.grpc_client import Client, Failure
from lib.grpc_client import tensor as grpc_tensor
from lib.nodes import PROXY, balancer
from lib.sequences import ALL, LONG, Sequences, state
from lib.server import SLOW, free_port, nap
from lib.wire import infer_path, tensor

LOST = "the node is gone: sequence lost, start again"
# until the nodes have reported twice: a report of before decides a choice else
PAUSE_S = 0.05
START = "must specify the START flag on the first request of the sequence"

REST = """\
        location / {
            proxy_pass http://nodes;
        }
"""

GRPC = """\
        listen 127.0.0.1:%d http2;
        location / {
            grpc_pass grpc://nodes;
        }
"""


class Nodes:
    """Two nodes and their balancer; each node writes its executions down."""

    def __init__(self, make_server, folder, **kw):
        self.made = []
        for i in range(2):
            place = folder / str(i)
            place.mkdir()
            place.chmod(0o777)
            node = Sequences(make_server, place)
            node.start(LONG + ALL + state(), max_batch=32, does="sum", **kw)
            self.made.append(node)
        self.balancer = None

    def ports(self):
        return [n.server.port for n in self.made]

    def put_before(self, make_server, server=REST, ports=None,
                   sequence="$http_x_sequence_id", more=""):
        self.balancer = balancer(
            make_server, ports or self.ports(),
            f"queue interval=20ms sequence={sequence}{more}", server=server,
            workers=2)
        assert process.wait_until(
            lambda: self.balancer.log_text().count("is ready") >= 2,
            10 * SLOW)
        return self.balancer

    def ask(self, id, value, start=False, end=False):
        """(status, first value or text)"""
        body = {"inputs": [tensor("IN", "INT32", [1, 1], [value])],
                "parameters": {"sequence_id": id, "sequence_start": start,
                               "sequence_end": end}}
        answer = self.balancer.post(infer_path("m"), json.dumps(body).encode(),
                                    {"X-Sequence-Id": str(id)})
        return answer.status, answer.error if answer.status != 200 \
            else answer.json()["outputs"][0]["data"][0]

    def has(self, id):
        """The node with executions of this sequence."""
        found = [n for n in self.made if any(
            r["number"] == id for e in n.executions() for r in e["rows"])]
        assert len(found) == 1, found
        return found[0]

    def kill(self, node):
        """As a machine that is gone: nothing of it answers."""
        server = node.server
        server.kill()
        return server


@pytest.fixture
def nodes(make_server):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="inf-balance-"))
    folder.chmod(0o777)
    made = []

    def make(**kw):
        made.append(Nodes(make_server, folder, **kw))
        return made[-1]

    yield make
    for it in made:
        for node in it.made:
            node.open_all()
    shutil.rmtree(folder, ignore_errors=True)


def test_a_sequence_stays(make_server, nodes):
    """Many at a time, on both nodes, from any worker."""
    it = nodes()
    it.put_before(make_server)
    ids = range(1, 21)
    for step in range(1, 5):
        for id in ids:
            nap(PAUSE_S if step == 1 else 0)
            assert it.ask(id, id, start=step == 1, end=step == 4) \
                == (200, id * step)
    assert {it.made.index(it.has(id)) for id in ids} == {0, 1}


def test_a_lost_node_s_sequences_are_lost(make_server, nodes):
    """Told once each; they start again on the node that is left."""
    it = nodes()
    server = it.put_before(make_server)
    for id in range(1, 11):
        assert it.ask(id, 1, start=True) == (200, 1)
    dead = it.has(1)
    where = {id: it.has(id) for id in range(1, 11)}
    it.kill(dead)
    lost = [id for id in where if where[id] is dead]
    for id in where:
        if id in lost:
            assert it.ask(id, 2) == (503, LOST)
        else:
            assert it.ask(id, 2) == (200, 3)
    for id in lost:
        status, text = it.ask(id, 2)
        assert status == 400
        assert START in text
        assert it.ask(id, 5, start=True) == (200, 5)
        assert it.ask(id, 2, end=True) == (200, 7)
    assert server.log_text().count("a sequence is lost with its node") \
        == len(lost)


def test_a_start_after_the_loss_is_no_loss(make_server, nodes):
    it = nodes()
    it.put_before(make_server)
    assert it.ask(1, 1, start=True) == (200, 1)
    it.kill(it.has(1))
    assert it.ask(1, 5, start=True) == (200, 5)
    assert it.ask(1, 6) == (200, 11)


def test_what_waits_on_a_lost_node(make_server, nodes):
    """The node may be well when a connection breaks, so that is nginx's 502;
    the next request finds out."""
    it = nodes()
    server = it.put_before(make_server)
    assert it.ask(1, 1, start=True) == (200, 1)
    dead = it.has(1)
    dead.gates["m"].close(1)
    with server.wire(20) as waiting:
        body = {"inputs": [tensor("IN", "INT32", [1, 1], [2])],
                "parameters": {"sequence_id": 1}}
        data = json.dumps(body).encode()
        waiting.send(
            f"POST {infer_path('m')} HTTP/1.1\r\nHost: x\r\n"
            f"X-Sequence-Id: 1\r\nContent-Length: {len(data)}\r\n\r\n"
            .encode() + data)
        dead.gates["m"].wait_entered(1)
        it.kill(dead)
        answer = waiting.read()
    assert answer.status == 502
    assert it.ask(1, 2) == (503, LOST)
    assert it.ask(1, 5, start=True) == (200, 5)


def test_a_node_that_comes_back_takes_no_sequence_away(make_server, nodes):
    it = nodes()
    server = it.put_before(make_server)
    for id in range(1, 7):
        assert it.ask(id, 1, start=True) == (200, 1)
    core = it.made[0].server.core()
    os.kill(it.made[0].server.core(), signal.SIGSTOP)
    said = f"node 127.0.0.1:{it.made[0].server.port}"
    assert process.wait_until(
        lambda: any(said in line and "it gets no requests" in line
                    for line in server.log_text().splitlines()), 20 * SLOW)
    for id in range(11, 15):
        assert it.ask(id, 1, start=True) == (200, 1)
        assert it.has(id) is it.made[1]
    os.kill(core, signal.SIGCONT)
    assert process.wait_until(
        lambda: server.log_text().count(said + ' of upstream "nodes" is '
                                        'ready') == 2, 10 * SLOW)
    for id in [*range(1, 7), *range(11, 15)]:
        assert it.ask(id, 1) == (200, 2)


def test_no_id_is_no_sequence(make_server, nodes):
    it = nodes()
    server = it.put_before(make_server)
    for id in ("", "0"):
        answer = server.get("/v2/models/m", headers={"X-Sequence-Id": id})
        assert answer.status == 200


def test_sequences_of_grpc(make_server, nodes):
    """The id comes as metadata; probes go to the port of REST."""
    it = nodes(http2=True)
    port = free_port()
    (a, b) = it.made
    # one port for all probes: the nodes differ by their ports here, so one
    # node's readiness stands for both
    it.put_before(make_server, GRPC % port,
                  [a.server.port2, b.server.port2],
                  more=f" port={a.server.port}")

    def ask(client, id, value, start=False):
        answer = client.infer(
            "m", grpc_tensor("IN", "INT32", [1, 1],
                             value.to_bytes(4, "little")),
            options={"sequence_id": id, "sequence_start": start},
            metadata=[("x-sequence-id", str(id))])
        return int.from_bytes(answer.raw_output_contents[0][:4], "little")

    with Client(port) as client:
        for id in range(1, 31):
            nap(PAUSE_S)
            assert ask(client, id, 1, start=True) == 1
        for id in range(1, 31):
            assert ask(client, id, 5) == 6
        where = {id: it.has(id) for id in range(1, 31)}
        assert {it.made.index(n) for n in where.values()} == {0, 1}
        it.kill(b)
        lost = [id for id in where if where[id] is b]
        for id in where:
            if id not in lost:
                assert ask(client, id, 1) == 7
                continue
            with pytest.raises(Failure) as error:
                ask(client, id, 1)
            assert error.value.code.name == "UNAVAILABLE"
            assert error.value.text == LOST
            with pytest.raises(Failure) as error:
                ask(client, id, 1)
            assert error.value.code.name == "INVALID_ARGUMENT"
            assert START in error.value.text
            assert ask(client, id, 3, start=True) == 3


# ---- what the balancer does with sequences, on nodes that only answer

class Sticky:
    """Two nodes; sequence 1 is on the first, and new ones go to the other."""

    def __init__(self, make_server, make_nodes, **kw):
        self.first, self.other = make_nodes(0, 50)
        self.server = balancer(
            make_server, [self.first.port, self.other.port],
            "queue interval=20ms sequence=$http_x_sequence_id", **kw)
        self.settle()
        assert self.ask(1) == 200
        assert self.count() == [1, 0]
        self.first.set_queue(100)
        self.settle()

    def settle(self):
        for node in (self.first, self.other):
            assert process.wait_until(node.probed(3), 10 * SLOW)

    def ask(self, id):
        return self.server.post("/v2/models/m/infer", b"{}",
                                {"X-Sequence-Id": str(id)}).status

    def count(self):
        found = [len(n.received) for n in (self.first, self.other)]
        self.first.received.clear()
        self.other.received.clear()
        return found


def test_a_kept_connection_that_is_closed_ends_no_sequence(make_server,
                                                           make_nodes):
    it = Sticky(make_server, make_nodes, more="        keepalive 4;\n",
                server=PROXY)
    it.first.closes_kept = True
    assert [it.ask(1) for _ in range(4)] == [502, 200, 502, 200]
    assert it.count() == [2, 0]
    assert "a sequence is lost" not in it.server.log_text()


def test_nginx_tries_the_same_node_again(make_server, make_nodes):
    """Where it may, on a connection that is not a kept one."""
    it = Sticky(make_server, make_nodes, more="        keepalive 4;\n",
                server=PROXY.replace("}", """\
    proxy_next_upstream error non_idempotent;
        }"""))
    it.first.closes_kept = True
    assert [it.ask(1) for _ in range(4)] == [200] * 4
    assert it.count() == [4, 0]
    assert "prematurely closed" in it.server.log_text()


def test_a_full_node_keeps_its_sequences(make_server, make_nodes):
    """max_conns holds for them, too, and they do not move."""
    it = Sticky(make_server, make_nodes)
    text = it.server.conf.read_text()
    it.server.conf.write_text(text.replace(
        f":{it.first.port};", f":{it.first.port} max_conns=1;"))
    it.server.reload()
    it.settle()
    it.first.gate.clear()
    waiting = threading.Thread(target=it.ask, args=(1,))
    waiting.start()
    assert process.wait_until(lambda: it.first.received, 10 * SLOW)
    assert it.ask(1) == 502
    assert it.ask(2) == 200
    it.first.gate.set()
    waiting.join()
    assert it.ask(1) == 200
    assert it.count() == [2, 1]
    assert "a sequence is lost" not in it.server.log_text()


def test_ids_of_one_checksum_push_no_sequence_out(make_server, make_nodes):
    """Twice as many as a bucket has places."""
    it = Sticky(make_server, make_nodes)
    bits = zlib.crc32(b"1") % 8192
    same = itertools.islice(
        (i for i in itertools.count(2)
         if zlib.crc32(str(i).encode()) % 8192 == bits), 16)
    assert {it.ask(id) for id in same} == {200}
    assert it.count() == [0, 16]
    assert it.ask(1) == 200
    assert it.count() == [1, 0]
