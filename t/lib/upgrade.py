"""nginx's binary upgrade: USR2, WINCH and QUIT of the old master, and back."""

import os
import signal

from lib import process
from lib.server import SLOW, Adopted


def send(pid, name):
    os.kill(pid, getattr(signal, f"SIG{name}"))


def workers_of(master):
    found = []
    for pid in process.descendants(master):
        stat = process.stat(pid)
        if stat and stat[2] == master \
                and "worker process" in process.cmdline(pid):
            found.append(pid)
    return found


def wait(what, condition, seconds=60):
    assert process.wait_until(condition, seconds * SLOW), what


def begin(server):
    """USR2: the new master runs beside the old one, both with workers."""
    old = server.process.pid
    send(old, "USR2")
    wait("no new master", lambda: server.pid_file() not in (0, old))
    new = server.pid_file()
    wait("no new workers", lambda: workers_of(new))
    return old, new


def finish(server, old, new):
    """WINCH, then QUIT of the old master."""
    send(old, "WINCH")
    wait("old workers stay", lambda: not workers_of(old), 120)
    send(old, "QUIT")
    Adopted(old).wait(60 * SLOW)
    server.adopt(new)


def take_back(server, old, new):
    """After WINCH: HUP of the old master, QUIT of the new one."""
    send(old, "WINCH")
    wait("old workers stay", lambda: not workers_of(old), 120)
    send(old, "HUP")
    wait("no workers again", lambda: workers_of(old))
    send(new, "QUIT")
    wait("the new master stays", lambda: not process.alive(new), 120)
    wait("no pid file", lambda: server.pid_file() == old)
