"""A module and a core of different versions meet: neighbours speak with each
other, others say that nginx wants a restart, and nginx serves the rest."""

import os
import shutil

import pytest

from lib import crowd, process, upgrade, versions
from lib.crowd import Crowd
from lib.server import MODULE, SLOW

THIS, LOWEST = versions.numbers()
RESTART = (rf"versions {THIS + 2} to {THIS + 2} of the channel, this core"
           rf" {LOWEST} to {THIS}: restart nginx")


@pytest.fixture(scope="module")
def builds(tmp_path_factory):
    """The next version, which speaks this one, and a later one, which does
    not."""
    made = {}
    for name, version, lowest in (("next", THIS + 1, THIS),
                                  ("later", THIS + 2, THIS + 2)):
        for what in ("core", "module"):
            made[name, what] = getattr(versions, what)(
                tmp_path_factory.mktemp(f"{name}-{what}"), version, lowest)
    return made


@pytest.fixture
def start(make_server):
    """A server whose module is a file of its own, to be replaced."""
    def make(**kw):
        server = make_server(
            crowd.fill, daemon=True, http2=True, connections=1000,
            http=crowd.HTTP, server=crowd.SERVER + "        location = /page"
            " { return 200 page; }\n", allow_alarms=["no welcome"],
            parts="health metadata config infer generate", start=False)
        shutil.copy(kw.get("module", MODULE), server.prefix / "module.so")
        server.write_config(module=server.prefix / "module.so",
                            core=kw.get("core", server.fields["core"]))
        return server.start(kw.get("wait", "ready"))
    return make


def replace_module(server, module):
    shutil.copy(module, server.prefix / "module.so.new")
    os.rename(server.prefix / "module.so.new", server.prefix / "module.so")


def reload(server):
    supervisors = server.supervisors()
    server.signal("HUP")
    assert process.wait_until(
        lambda: server.supervisors()
        and not set(server.supervisors()) & set(supervisors), 20 * SLOW)


def test_a_newer_module_meets_this_core_and_is_taken_back(start, builds):
    server = start()
    core = server.core()
    with Crowd(server, sizes=(1 << 10,)) as clients:
        for end in (upgrade.take_back, upgrade.finish):
            clients.wait_for_more()
            replace_module(server, builds["next", "module"])
            old, new = upgrade.begin(server)
            clients.wait_for_more()
            end(server, old, new)
            clients.wait_for_more(2)
    clients.check()
    assert server.core() == core


def test_this_module_meets_a_newer_core(start, builds):
    """The program on disk is another one when the core is replaced."""
    server = start()
    server.write_config(core=builds["next", "core"])
    with Crowd(server, sizes=(1 << 10,),
               kinds=("http1", "http2", "grpc")) as clients:
        clients.wait_for_more()
        reload(server)
        clients.wait_for_more()
        server.end_core("QUIT")
        clients.wait_for_more(2)
    clients.check()


def unserved(server):
    """The server is not ready and says why; nginx serves everything else."""
    answer = server.get("/v2/health/ready")
    assert answer.status == 503, answer
    assert server.get("/page").status == 200
    assert server.get("/v2/health/live").status == 200
    refused = server.post(crowd.INFER, b"{}")
    assert refused.status == 503, refused
    assert int(refused.headers["retry-after"]) > 0
    assert refused.error == answer.error
    return answer.error


def test_a_module_that_is_too_new_asks_for_a_restart(start, builds):
    """Another core is enough, and so is the way back."""
    server = start()
    core = server.core()
    replace_module(server, builds["later", "module"])
    old, new = upgrade.begin(server)
    server.wait_log(RESTART)
    upgrade.take_back(server, old, new)
    assert server.wait_for("/v2/health/ready")
    assert server.core() == core

    old, new = upgrade.begin(server)
    upgrade.finish(server, old, new)
    assert RESTART in unserved(server)
    assert server.core() == core

    server.write_config(core=builds["later", "core"])
    reload(server)
    server.end_core("QUIT")
    assert server.wait_for("/v2/models/id_uint8/ready")


def test_a_core_that_is_too_new_asks_for_a_restart(start, builds):
    server = start(core=builds["later", "core"], wait="")
    assert process.wait_until(
        lambda: server.get("/v2/health/ready").status == 503, 20 * SLOW)
    assert (rf"versions {LOWEST} to {THIS} of the channel, this core"
            rf" {THIS + 2} to {THIS + 2}: restart nginx") in unserved(server)
