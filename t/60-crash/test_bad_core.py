"""The core's program is not one: the log and readiness say why, nginx serves
everything else, and a good program in its place is enough."""

import os
import re
import shutil

import pytest

from lib import models
from lib.server import CORE, SLOW
from lib.wire import tensor

SMALL = {"inputs": [tensor("IN", "INT32", [2], [1, 2])]}
REJECTED = '"[^"]*" is not a program|there is no core program "[^"]*"'
NOT_RUN = "its program cannot be run"


def foreign(path):
    """The program of another processor."""
    data = bytearray(CORE.read_bytes())
    data[18:20] = b"\xf3\x00"               # e_machine: RISC-V
    path.write_bytes(data)
    path.chmod(0o755)


def closed(path):
    shutil.copy(CORE, path)
    path.chmod(0o644)


def script(text):
    def make(path):
        path.write_text(text)
        path.chmod(0o755)
    return make


CASES = {
    "missing": (lambda path: None, NOT_RUN,
                'cannot run ".*": No such file or directory'),
    "not executable": (closed, NOT_RUN, 'cannot run ".*": Permission denied'),
    "a directory": (os.mkdir, NOT_RUN, 'cannot run ".*": Permission denied'),
    "another architecture": (foreign, NOT_RUN,
                             'cannot run ".*": Exec format error'),
    "no program": (script("nothing of a program\n"), NOT_RUN,
                   'cannot run ".*": Exec format error'),
    "ends at once": (script("#!/bin/sh\necho good bye\n"),
                     "it exited with code 0",
                     r'core \d+ exited with code 0, its last output was'
                     ' "good bye"'),
    "fails at once": (script("#!/bin/sh\necho no >&2\nexit 3\n"),
                      "it exited with code 3",
                      r'core \d+ exited with code 3, its last output was "no"'),
    # not by a signal that ASan catches
    "crashes at once": (script("#!/bin/sh\nkill -ABRT $$\n"),
                        "it exited on signal 6",
                        r"core \d+ exited on signal 6"),
}


@pytest.fixture
def folder(tmp_path):
    shutil.copy(CORE.parent / "libtritonserver.so", tmp_path)
    return tmp_path


@pytest.fixture
def start(make_server, folder):
    """A server whose core's program is a file of its own."""
    def make(**kw):
        return make_server(
            models.standard_repository, core=folder / CORE.name,
            allow_alarms=["exited on signal", REJECTED],
            server="        location = /page { return 200 page; }\n", **kw)
    return make


def place(folder, case):
    """A bad program in the place of the good one, if there is one."""
    program = folder / CORE.name
    program.unlink(missing_ok=True)
    CASES[case][0](program)


def heal(folder):
    program = folder / CORE.name
    if program.is_dir():
        program.rmdir()
    shutil.copy(CORE, folder / "new")
    os.rename(folder / "new", program)


def check(server, case):
    """Until the program is good again."""
    _, why, line = CASES[case]
    server.wait_log(line)
    assert server.wait_for("/v2/health/ready", status=503)
    answer = server.get("/v2/health/ready")
    assert answer.status == 503
    assert answer.error == f"the inference core is not running: {why}"
    assert server.get("/page").status == 200
    assert server.get("/v2/health/live").status == 200


@pytest.mark.parametrize("case", CASES)
def test_a_program_that_has_become_bad(start, folder, case):
    """The core that runs is not concerned, until another one is needed."""
    heal(folder)
    server = start()
    place(folder, case)
    assert server.infer("id_int32", SMALL).status == 200
    os.kill(server.core(), 9)
    check(server, case)
    heal(folder)
    assert server.wait_for("/v2/health/ready", 60)
    assert server.infer("id_int32", SMALL).status == 200


@pytest.mark.parametrize("case", ["another architecture", "fails at once"])
def test_a_server_that_starts_without_a_core(start, folder, case):
    place(folder, case)
    server = start(wait="")
    check(server, case)
    answer = server.infer("id_int32", SMALL)
    assert answer.status == 503
    assert int(answer.headers["retry-after"]) > 0
    assert answer.error == \
        f"the inference core is not running: {CASES[case][1]}"
    again = server.infer("id_int32", SMALL)         # at once
    assert again.status == 503
    # at once, at once, then after 250, 500, 1000 ms and so on up to 5 s
    assert server.log_text().count(" started\n") < 15 * SLOW
    heal(folder)
    assert server.wait_for("/v2/health/ready", 60)
    assert server.infer("id_int32", SMALL).status == 200


@pytest.mark.parametrize("files", [40, 64])
def test_a_core_within_a_low_limit_of_files(make_server, files):
    """It has the limit that workers have."""
    server = make_server(models.standard_repository, connections=16,
                         main=f"worker_rlimit_nofile {files};")
    assert server.infer("id_int32", SMALL).status == 200


def test_a_limit_of_files_that_leaves_none_for_a_core(make_server):
    server = make_server(models.standard_repository, connections=16, wait="",
                         main="worker_rlimit_nofile 32;")
    server.wait_log(r'\[error\] .*core: cannot place the descriptors of "[^"]*'
                    r'inference-core": Too many open files')


@pytest.mark.parametrize("case", ["missing", "not executable", "a directory"])
def test_the_configuration_is_rejected(start, folder, case):
    """By nginx -t, and by a reload of a server that goes on."""
    heal(folder)
    server = start()
    place(folder, case)
    status, text = server.check_config()
    assert status == 1
    assert re.search(REJECTED, text), text
    core, workers = server.core(), server.workers()
    server.signal("HUP")
    server.wait_log(REJECTED)
    assert (server.core(), server.workers()) == (core, workers)
    assert server.infer("id_int32", SMALL).status == 200
