"""Secrets of inference-server before clients and the machine's users."""

import base64
import json
import os
import pathlib
import pwd
import signal
import socket
import stat
import subprocess

import pytest

from lib import process, wire
from lib.launcher import PROGRAM, launcher_env, rejected
from lib.server import BACKENDS, SLOW
from lib.wire import request_bytes

EXPLICIT = "--model-control-mode=explicit"
ELSEWHERE = "127.0.0.9"         # a client who is not 127.0.0.1
CONTROL = [("POST", "/v2/repository/index", 200),
           ("POST", "/v2/repository/models/one/load", 200),
           ("POST", "/v2/repository/models/one/unload", 200),
           ("POST", "/v2/repository/here/index", 200),
           ("GET", "/v2/trace/setting", 200),
           ("POST", "/v2/models/one/trace/setting", 500),   # without a body
           ("GET", "/v2/logging", 200)]


def ask(launcher, method, path, body=b"", source="127.0.0.1", headers=None):
    """One request, sent from that address."""
    with socket.create_connection(("127.0.0.1", launcher.port), 20 * SLOW,
                                  (source, 0)) as s:
        s.sendall(request_bytes(method, path, body,
                                {"Connection": "close", **(headers or {})}))
        data = b""
        while more := s.recv(1 << 16):
            data += more
    head, _, body = data.partition(b"\r\n\r\n")
    headers = dict(line.lower().split(": ", 1)
                   for line in head.decode().split("\r\n")[1:])
    return wire.Response(int(head.split()[1]), headers, body)


def is_rejected(answer):
    assert answer.status == 403, answer
    assert answer.headers["content-type"] == "application/json"
    assert "--control-from" in answer.error


# ---- who may control the server

@pytest.mark.parametrize("control", ["127.0.0.1", "127.0.0.1/32,::1", "none"])
def test_others_may_not_control(launch, control):
    launcher = launch(EXPLICIT, f"--control-from={control}")
    for method, path, status in CONTROL:
        is_rejected(ask(launcher, method, path, source=ELSEWHERE))
        answer = ask(launcher, method, path)
        if control == "none":
            is_rejected(answer)
        else:
            assert answer.status == status, (path, answer)
    assert ask(launcher, "GET", "/v2/health/live",
               source=ELSEWHERE).status == 200      # it serves them, though


@pytest.mark.parametrize("options", [[], ["--control-from=all"],
                                     ["--control-from=10.0.0.0/8,127.0.0.9"],
                                     ["--control-from=10.0.0.1,loopback"]])
def test_who_is_listed_may_control(launch, options):
    launcher = launch(EXPLICIT, *options)
    for method, path, status in CONTROL[:3]:
        answer = ask(launcher, method, path, source=ELSEWHERE)
        assert answer.status == status, (path, answer)


@pytest.mark.parametrize("origin", ["http://evil.example", "null",
                                    "http://localhost:8000"])
def test_a_page_in_a_browser_here_may_not_control(launch, origin):
    """It comes from this machine, sent by the author of the page."""
    launcher = launch(EXPLICIT)
    for method, path, _ in CONTROL:
        is_rejected(ask(launcher, method, path, b"{}", headers={
            "Origin": origin, "Content-Type": "text/plain"}))
    assert launcher.ask("one").status == 404        # nobody loaded it
    launcher.stop()
    assert ask(launch(EXPLICIT, "--control-from=all"), "POST",
               "/v2/repository/models/one/load",
               headers={"Origin": origin}).status == 200


def test_this_machine_alone_unless_told_otherwise(launch):
    launcher = launch()
    conf = launcher.conf()
    launcher.stop()
    _, _, rest = conf.partition("location ~ \"^/v2/(repository/")
    rules = [line.strip() for line in rest.partition("}")[0].splitlines()
             if "allow" in line or "deny" in line]
    assert rules == ["allow 127.0.0.0/8;", "allow ::1;", "allow unix:;",
                     "deny all;"]
    assert "location / {\n            inference all;\n" in conf
    assert "allow" not in launch("--control-from=all").conf()


@pytest.mark.parametrize("path", [
    "/v2/repository/models/one/load", "//v2/repository/models/one/load",
    "/v2//repository/models/one/load", "/v2/%72epository/models/one/load",
    "/v2/repository%2Fmodels/one/load", "/v2/repository/models/one/%6coad",
    "/v2/./repository/models/one/load", "/v2/x/../repository/models/one/load",
    "/v2/models/../repository/models/one/load",
    "/v2/models/%2e%2e/repository/models/one/load",
    "/v2/models%2f..%2frepository/models/one/load",
    "/v2/repository/../repository/models/one/load",
    "/v2/repository/x/models/one/load", "/v2%2Frepository/models/one/load",
    "/%76%32/repository/models/one/load", "/v2/repository/models/one/load?a=b",
    "/v2/repository/models/one/load/", "/v2/repository;x/models/one/load",
    "/v2/repository/models/one%2Fload"])
def test_no_spelling_of_a_path_gets_by(launch, path):
    launcher = launch(EXPLICIT, "--control-from=none")
    assert ask(launcher, "POST", path).status in (403, 404)
    assert ask(launcher, "POST", path, b"{}",
               source=ELSEWHERE).status in (403, 404)
    assert launcher.ask("one").status == 404        # nobody loaded it


@pytest.mark.parametrize("value", [
    "", "everybody", "10.0.0.0/33", "10.0.0.0/", "::1/129", "10.0.0", "all,",
    "all,10.0.0.1", "loopback,none", "10.0.0.1;deny", "10.0.0.1/8/8",
    "10.0.0.1,,::1", "1" * 300])
def test_lists_that_mean_nothing(value):
    said = rejected("--model-repository=/tmp", f"--control-from={value}")
    assert "control-from" in said


# ---- heads that take their time

def titled(launcher, title):
    return {pid for pid in launcher.tree()
            if process.cmdline(pid).startswith(title)}


def test_a_head_takes_no_longer_than_its_time(launch):
    """The minute that is written, cut to a second."""
    launcher = launch()
    path, = launcher.tmp.rglob("nginx.conf")
    conf = path.read_text()
    assert conf.count("client_header_timeout 60s;") == 1
    path.write_text(conf.replace("client_header_timeout 60s;",
                                 "client_header_timeout 1s;"))
    master, = titled(launcher, "nginx: master")
    old = titled(launcher, "nginx: worker")
    os.kill(master, signal.SIGHUP)
    assert process.wait_until(
        lambda: (now := titled(launcher, "nginx: worker")) and not now & old,
        30 * SLOW)
    for begun in (b"", b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n"):
        with socket.create_connection(("127.0.0.1", launcher.port),
                                      30 * SLOW) as s:
            s.sendall(begun)
            assert s.recv(1 << 16) == b""
    assert launcher.ask().status == 200


# ---- code, shared memory, requests' memory

@pytest.mark.parametrize("option,status", [
    ([], 400), (["--allow-code-upload=false"], 400),
    (["--allow-code-upload=true"], 200)])
def test_code_comes_by_request_only_where_it_may(launch, option, status):
    launcher = launch(EXPLICIT, *option)
    library = (BACKENDS / "identity/libtriton_identity.so").read_bytes()
    body = {"parameters": {
        "config": json.dumps({
            "backend": "mine", "max_batch_size": 0,
            "input": [{"name": "I", "data_type": "TYPE_FP32", "dims": [1]}],
            "output": [{"name": "O", "data_type": "TYPE_FP32",
                        "dims": [1]}]}),
        "file:libtriton_mine.so": base64.b64encode(library).decode(),
        "file:1/data": ""}}
    answer = ask(launcher, "POST", "/v2/repository/models/sent/load",
                 json.dumps(body).encode())
    assert answer.status == status, answer


@pytest.mark.parametrize("option,status", [
    ([], 501), (["--allow-client-shm=false"], 501),
    (["--allow-client-shm=true"], 500),
    (["--allow-client-shm=true", "--control-from=none"], 403)])
def test_shared_memory(launch, option, status):
    """Off unless it is allowed, and then for those who may control."""
    launcher = launch(*option)
    answer = ask(launcher, "POST",
                 "/v2/systemsharedmemory/region/r/register",
                 b'{"key":"/inf-t-nobody","byte_size":8}')
    assert answer.status == status and answer.error
    answer = ask(launcher, "POST", "/v2/models/one/infer", json.dumps({
        "inputs": [{"name": "IN", "datatype": "FP32", "shape": [1],
                    "parameters": {"shared_memory_region": "r",
                                   "shared_memory_byte_size": 4}}]}).encode())
    assert answer.status == (501 if status == 501 else 404)


def test_memory_of_requests(launch):
    body = b'{"inputs":[{"name":"IN","datatype":"FP32","shape":[1000000],' \
        b'"data":[' + b",".join([b"1.5"] * 1000000) + b"]}]}"
    small = launch("--request-memory=2m")
    path = "/v2/models/one/infer"
    assert ask(small, "POST", path, body).status in (413, 503)
    small.stop()
    assert ask(launch("--request-memory=64M"), "POST", path,
               body).status == 200


@pytest.mark.parametrize("value", ["", "much", "1x", "1gg", "-1", "1.5g", "g"])
def test_sizes_that_are_none(value):
    said = rejected("--model-repository=/tmp", f"--request-memory={value}")
    assert "request-memory" in said


# ---- other users of the machine

def as_user(uid, code, *arguments):
    """The output of Python code as that user."""
    done = subprocess.run(
        ["/usr/bin/python3", "-c", code, *map(str, arguments)], user=uid,
        group=uid, extra_groups=[], capture_output=True, text=True,
        timeout=30 * SLOW, check=False)
    return done.stdout + done.stderr


def test_directories_are_ours_alone(launch):
    launcher = launch()
    made = list(launcher.tmp.iterdir())
    assert len(made) == 2
    for folder in made:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700, folder
    own, = launcher.tmp.rglob("launcher.sock")
    connect = "import socket, sys; socket.socket(socket.AF_UNIX).connect(" \
        "sys.argv[1]); print('connected')"
    assert "PermissionError" in as_user(65534, connect, own)
    assert as_user(0, connect, own) == "connected\n"


def uids(launcher):
    """The users of {what: a process below the launcher, or itself}."""
    found = {}
    for pid in launcher.tree():
        title = process.cmdline(pid)
        for what in ("nginx: master", "nginx: worker"):
            if title.startswith(what):
                found.setdefault(what, set()).add(uid_of(pid))
        if process.stat(pid)[0].startswith("inference-"):
            found.setdefault(process.stat(pid)[0][:14], set()).add(uid_of(pid))
    return found


def uid_of(pid):
    """The files of a process that isn't dumpable are root's."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(text.split("\nUid:")[1].split()[1])


def someone():
    """A user with a name, who is not root."""
    return pwd.getpwnam("games")


def test_workers_are_the_repository_s_owner(launch, owned):
    user = someone()
    owned(user.pw_uid)
    launcher = launch()
    assert launcher.ask().status == 200
    ids = uids(launcher)
    assert ids == {"nginx: master": {0}, "nginx: worker": {user.pw_uid},
                   "inference-serv": {0}, "inference-core": {user.pw_uid}}
    temp, = launcher.tmp.glob("inference-server-temp-*")
    own, = set(launcher.tmp.glob("inference-server-*")) - {temp}
    for folder, mode in ((own, 0o700), (temp, 0o711)):
        assert folder.stat().st_uid == 0        # a worker can't change it
        assert stat.S_IMODE(folder.stat().st_mode) == mode
    leaves = list(temp.iterdir())
    assert len(leaves) == 5
    for folder in leaves:
        assert folder.stat().st_uid == user.pw_uid
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert "as root" not in launcher.log.read_text()
    assert launcher.stop() == 0


def test_workers_lay_no_link_where_root_makes_directories(launch, owned):
    """nginx's master follows links when it makes its temporary directories
    and gives them to the workers' user, at each reload again."""
    user = someone()
    owned(user.pw_uid)
    launcher = launch()
    temp, = launcher.tmp.glob("inference-server-temp-*")
    for command in (["rmdir", temp / "proxy"], ["mv", temp / "proxy",
                    temp / "elsewhere"], ["ln", "-s", "/etc", temp / "new"]):
        done = subprocess.run(command, user=user.pw_uid, group=user.pw_gid,
                              extra_groups=[], capture_output=True, text=True,
                              check=False)
        assert "Permission denied" in done.stderr
    assert launcher.stop() == 0


def test_workers_are_a_user_by_name(launch, owned):
    user = someone()
    launcher = launch(f"--user={user.pw_name}", EXPLICIT, "--load-model=one")
    assert launcher.ask().status == 200
    ids = uids(launcher)
    assert ids["nginx: worker"] == ids["inference-core"] == {user.pw_uid}
    assert ask(launcher, "POST",
               "/v2/repository/models/slow/load").status == 200


@pytest.mark.parametrize("by", ["owner", "option"])
def test_everything_is_a_user_without_a_name(tmp_path, launch, owned, by):
    owned(4321)
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o777)
    launcher = launch(*(["--user=4321"] if by == "option" else []))
    assert launcher.ask().status == 200
    assert set.union(*uids(launcher).values()) == {4321}
    assert "user 4321" in launcher.log.read_text()
    assert launcher.stop() == 0


def test_a_repository_of_root_s_is_a_warning(launch):
    launcher = launch()
    assert set.union(*uids(launcher).values()) == {0}
    assert "run as root" in launcher.log.read_text()
    assert "--user=NAME" in launcher.log.read_text()
    launcher.stop()
    assert "run as root" not in launch("--user=root").log.read_text()


def test_users_that_cannot_be(repository, tmp_path):
    option = f"--model-repository={repository}"
    assert "no such user" in rejected(option, "--user=nobody-of-this-name")
    done = subprocess.run(
        [PROGRAM, option, "--user=root"], user=65534, group=65534,
        extra_groups=[], env=launcher_env(), capture_output=True, text=True,
        timeout=30, check=False)
    assert done.returncode == 1
    assert "only root" in done.stderr


def test_the_workers_directory_is_removed_as_the_workers(launch, owned):
    """A link that a worker leaves there must not lead root elsewhere: what
    the worker may not remove stays."""
    owned(someone().pw_uid)
    launcher = launch()
    temp, = launcher.tmp.glob("inference-server-temp-*")
    theirs = temp / "proxy" / "theirs"
    theirs.mkdir(mode=0o700)
    (theirs / "file").write_text("root's")
    launcher.process.send_signal(signal.SIGTERM)
    assert launcher.process.wait(30 * SLOW) == 0
    assert (theirs / "file").read_text() == "root's"
    assert list(launcher.tmp.iterdir()) == [temp]
    assert list(temp.rglob("*")) == [temp / "proxy", theirs, theirs / "file"]
