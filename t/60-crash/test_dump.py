"""Processes of its user may not read the core, unless "dump=on" says so.

Workers, supervisor and core run as the user nobody, as does the one who looks
here: what he may read a worker that somebody took over may read.
"""

import os
import re
import signal
import subprocess

import pytest

from lib import models, process
from lib.server import SLOW, Server


def fill(repository):
    models.standard_repository(repository)


def may_read(pid, what):
    reader = subprocess.run(
        ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups",
         "cat", f"/proc/{pid}/{what}"], capture_output=True, check=False)
    assert reader.returncode == 0 or b"Permission denied" in reader.stderr
    return reader.returncode == 0


@pytest.fixture
def server(request):
    s = Server(fill, user="nobody nogroup",
               inference_env=["INF_SECRET=of-the-core"])
    s.fields["core_options"] = request.param
    s.write_config()
    s.start()
    yield s
    s.stop()


@pytest.mark.parametrize("server", [""], indirect=True)
@pytest.mark.parametrize("what", ["environ", "maps", "auxv"])
def test_core_and_supervisor_are_closed(server, what):
    assert may_read(server.workers()[0], what)
    assert not may_read(server.core(), what)
    assert not may_read(server.supervisors()[0], what)


@pytest.mark.parametrize("server", [" dump=on"], indirect=True)
def test_dump_on_opens_them_and_a_reload_closes_the_core(server):
    assert may_read(server.core(), "environ")
    assert may_read(server.supervisors()[0], "environ")
    core = server.core()

    server.fields["core_options"] = " dump=off"
    server.write_config()
    server.signal("HUP")
    assert process.wait_until(lambda: not may_read(core, "environ"),
                              20 * SLOW)
    assert server.core() == core


@pytest.mark.parametrize("server", [""], indirect=True)
def test_the_next_core_is_closed_too(server):
    core = server.core()
    server.allow_alarms.append(re.compile("core .* exited on signal 9"))
    os.kill(core, signal.SIGKILL)
    assert process.wait_until(
        lambda: server.cores() not in ([], [core]), 20 * SLOW)
    server.wait_for("/v2/health/ready", 20 * SLOW)
    assert not may_read(server.core(), "environ")


@pytest.mark.parametrize("value", ["", "yes", "1", "onn"])
def test_other_values_are_rejected(make_server, value):
    s = make_server(fill, start=False)
    s.fields["core_options"] = f" dump={value}"
    s.write_config()
    status, text = s.check_config()
    assert status != 0
    assert f'"dump={value}"' in text
