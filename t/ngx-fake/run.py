#!/usr/bin/env python3
"""Tries the process side of the nginx module against the fake core.

    t/ngx-fake/run.py [--module SO] [--core PROGRAM] [--nginx PROGRAM] [NAME...]

Every scenario gets a directory, an nginx and ports of its own.  It passes when
its own checks hold, no alert is in the log, and neither a process nor a name
in /dev/shm is left.  Without --core the fake core is built first.
"""

import argparse
import contextlib
import ctypes
import errno
import fcntl
import glob
import http.client
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBC = ctypes.CDLL(None, use_errno=True)
SYS_PIDFD_GETFD = 438
SCENARIOS = []


def scenario(function):
    SCENARIOS.append(function)
    return function


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(what, function, seconds=5.0):
    end = time.monotonic() + seconds
    while True:
        value = function()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.01)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def must_stay_root():
    """Root in a container (no CAP_SYS_PTRACE) can't see what others run."""
    status = pathlib.Path("/proc/self/status").read_text(encoding="ascii")
    capabilities = int(re.search(r"CapEff:\s*(\w+)", status)[1], 16)
    return os.geteuid() == 0 and not capabilities & 1 << 19


class Server:
    """One nginx with the module, in a directory of its own."""

    def __init__(self, options, folder):
        self.options = options
        self.folder = pathlib.Path(folder)
        self.port = free_port()
        self.log = self.folder / "error.log"
        self.module = options.module
        self.core_program = self.folder / "inference-core"
        shutil.copy(options.core, self.core_program)
        self.core_program.chmod(0o755)
        self.main = ""
        self.http = "inference_core {core};"
        self.location = "inference all;"
        self.load_module = True
        self.as_user = None
        self.environment = dict(os.environ)
        self.spawned = None

    # ---- configuration and life

    def write_config(self):
        user = "user root;" if must_stay_root() else ""
        load = f"load_module {self.module};" if self.load_module else ""
        http_lines = self.http.format(core=self.core_program)
        temp = "\n".join(
            f"{n}_temp_path {self.folder}/{n};" for n in
            ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (self.folder / "nginx.conf").write_text(f"""
{load}
{user}
{self.main}
error_log {self.log} debug;
pid {self.folder}/pid;
events {{ worker_connections 512; }}
http {{
    access_log off;
    {temp}
    {http_lines}
    server {{
        listen 127.0.0.1:{self.port} reuseport;
        location / {{ {self.location} }}
        location = /alive {{ return 200 yes; }}
    }}
}}
""")

    def command(self, *more):
        return [self.options.nginx, "-p", str(self.folder), "-c",
                str(self.folder / "nginx.conf"), "-e", str(self.log), *more]

    def start(self, workers=2):
        if "daemon" not in self.main:
            self.main += "\ndaemon off;"
        if "worker_processes" not in self.main:
            self.main += f"\nworker_processes {workers};"
        self.write_config()
        self.spawned = subprocess.Popen(
            self.command(), cwd=self.folder, env=self.environment,
            user=self.as_user, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for("pid file", lambda: self.spawned.poll() or self.pid_file())
        if self.spawned.poll():
            raise AssertionError("nginx did not start: " + self.text()[-500:])
        wait_for("a server", lambda: self.get("/alive") == 200)
        self.started = time.monotonic()

    def run_as_nobody(self):
        """The checkout may lie where only root may look, in /root for one."""
        self.as_user = "nobody"
        self.module = shutil.copy(self.module, self.folder)
        os.chown(self.folder, 65534, 65534)
        self.log.touch()
        os.chown(self.log, 65534, 65534)

    def pid_file(self):
        with contextlib.suppress(OSError, ValueError):
            return int((self.folder / "pid").read_text())
        return 0

    def send(self, signo):
        os.kill(self.pid_file(), signo)

    def reload(self):
        n = self.text().count("reconfiguring")
        before = set(self.workers())
        self.write_config()
        self.send(signal.SIGHUP)
        wait_for("reload", lambda: self.text().count("reconfiguring") > n)
        wait_for("new workers", lambda: set(self.workers()) - before)
        wait_for("old workers' end", lambda: not set(self.workers()) & before)

    def stop(self, signo=signal.SIGQUIT):
        started = time.monotonic()
        if self.pid_file():
            with contextlib.suppress(OSError):
                self.send(signo)
        wait_for("end of all processes", lambda: not self.processes(), 10)
        self.spawned.wait(5)
        return time.monotonic() - started

    def kill_all(self):
        for pid in self.processes():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    # ---- what is there

    def processes(self):
        found = []
        for path in glob.glob("/proc/[0-9]*"):
            with contextlib.suppress(OSError):
                if os.readlink(path + "/cwd") == str(self.folder):
                    pid = int(path[6:])
                    if alive(pid):
                        found.append(pid)
        return found

    def titled(self, title):
        found = []
        for pid in self.processes():
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    if title.encode() in f.read():
                        found.append(pid)
        return found

    def workers(self):
        return self.titled("nginx: worker process")

    def helpers(self):
        return self.titled("nginx: cache manager process")

    def core_family(self):
        found = []
        for pid in self.processes():
            with contextlib.suppress(OSError):
                exe = os.readlink(f"/proc/{pid}/exe")
                if exe == str(self.core_program):
                    found.append(pid)
        return found

    def cores(self):
        """The core itself leads its group; its stub does not."""
        found = []
        for pid in self.core_family():
            with contextlib.suppress(OSError):
                if os.getpgid(pid) == pid:
                    found.append(pid)
        return found

    def core(self):
        return wait_for("one core", lambda: len(self.cores()) == 1
                        and self.cores())[0]

    def helper(self):
        return wait_for("one helper", lambda: len(self.helpers()) == 1
                        and self.helpers())[0]

    def shm(self):
        return glob.glob("/dev/shm/inference-core.*")

    def text(self):
        with contextlib.suppress(OSError):
            return self.log.read_text(errors="replace")
        return ""

    def wait_text(self, pattern, seconds=5.0):
        return wait_for(f"\"{pattern}\" in the log",
                        lambda: re.search(pattern, self.text()), seconds)

    # ---- requests

    def get(self, path="/v2/health/ready", timeout=15.0):
        c = http.client.HTTPConnection("127.0.0.1", self.port,
                                       timeout=timeout)
        try:
            c.request("GET", path)
            response = c.getresponse()
            response.read()
            return response.status
        except OSError:
            return 0
        finally:
            c.close()

    def expect_ready(self):
        wait_for("an answer of the core", lambda: self.get() == 200)


class Load:
    """Requests one after another on a few kept connections."""

    def __init__(self, server, threads=4, path="/v2/health/ready"):
        self.server = server
        self.path = path
        self.statuses = {}
        self.errors = []
        self.end = False
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.run)
                        for _ in range(threads)]

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.end = True
        for t in self.threads:
            t.join()

    def run(self):
        c = None
        fresh = False
        while not self.end:
            try:
                if c is None:
                    c = http.client.HTTPConnection(
                        "127.0.0.1", self.server.port, timeout=20)
                    fresh = True
                c.request("GET", self.path)
                response = c.getresponse()
                response.read()
                with self.lock:
                    self.statuses[response.status] = \
                        self.statuses.get(response.status, 0) + 1
                if response.will_close:
                    c.close()
                    c = None
                fresh = False
            except (OSError, http.client.HTTPException) as e:
                # a kept connection may be closed between two requests
                if fresh:
                    with self.lock:
                        self.errors.append(repr(e))
                if c is not None:
                    c.close()
                c = None


# ---- a core's death ---------------------------------------------------------

@scenario
def core_killed(s):
    s.start()
    s.expect_ready()
    for _ in range(5):
        core = s.core()
        family = s.core_family()
        os.kill(core, signal.SIGKILL)
        wait_for("the old core's family to end",
                 lambda: not any(alive(p) for p in family))
        s.expect_ready()
        assert s.core() != core
        assert len(s.shm()) == 1, s.shm()
    assert re.search(r"core \d+ exited on signal 9", s.text())
    s.stop()


@scenario
def calls_in_flight_go_to_the_next_core(s):
    s.start()
    s.expect_ready()
    results = []
    threads = [threading.Thread(
        target=lambda: results.append(s.get("/v2/models/slow/ready")))
        for _ in range(8)]
    for t in threads:
        t.start()
    time.sleep(0.2)
    os.kill(s.core(), signal.SIGKILL)
    for t in threads:
        t.join()
    assert results == [200] * 8, results
    s.stop()


@scenario
def core_killed_under_load(s):
    s.start()
    s.expect_ready()
    with Load(s) as load:
        for _ in range(6):
            time.sleep(0.3)
            os.kill(s.core(), signal.SIGKILL)
        time.sleep(0.5)
    assert not load.errors, load.errors[:3]
    assert set(load.statuses) <= {200, 503}, load.statuses
    assert load.statuses.get(200, 0) > 100, load.statuses
    s.stop()


@scenario
def core_that_dies_at_start(s):
    s.http += " inference_env INF_FAKE_DIE=1;"
    s.start()
    s.wait_text(r"exited on signal 6, its last output was "
                r"\"fake core dies as it was told\"")
    assert s.get() == 503
    time.sleep(3)
    # at once, at once, then after 250, 500, 1000, 2000 ms
    assert 4 <= s.text().count("exited on signal 6, its last") <= 6
    assert s.get("/v2/models/x/ready") == 503
    assert time.monotonic() - s.started > 9
    now = time.monotonic()
    assert s.get("/v2/models/x/ready") == 503
    assert time.monotonic() - now < 1
    s.stop()


@scenario
def core_that_rejects_a_worker(s):
    """It asks again and again; requests that wait for it are answered."""
    s.http += " inference_env INF_FAKE_REJECT=3;"
    s.start(workers=1)
    s.expect_ready()
    assert s.text().count("no welcome by the core") == 3, s.text()
    s.stop()


@scenario
def not_ready_is_told_by_its_cause(s):
    """Not by a text that is missing: 400 and 503 differ in the cause alone."""
    s.http += " inference_errors precise;"
    s.start(workers=1)
    s.expect_ready()
    assert s.get("/v2/models/asleep/ready") == 400
    assert s.get("/v2/models/silent/ready") == 503
    s.stop()


@scenario
def core_that_cannot_run(s):
    s.start()
    s.expect_ready()
    s.core_program.chmod(0o644)
    os.kill(s.core(), signal.SIGKILL)
    s.wait_text(r"core: cannot run .*Permission denied")
    results = []
    t = threading.Thread(
        target=lambda: results.append(s.get("/v2/models/x/ready")))
    t.start()
    time.sleep(0.3)
    s.core_program.chmod(0o755)
    t.join()
    assert results == [200], results
    s.stop()


# ---- other deaths -----------------------------------------------------------

@scenario
def helper_killed(s):
    s.start()
    s.expect_ready()
    core = s.core()
    for n in range(3):
        helper = s.helper()
        os.kill(helper, signal.SIGKILL)
        wait_for("another helper", lambda: s.helpers()
                 and helper not in s.helpers())
        wait_for("adoption", lambda: s.text().count(
            f"core {core} is watched") == n + 1)
        assert s.core() == core
        assert s.get() == 200
    os.kill(core, signal.SIGKILL)
    s.expect_ready()
    allow_alerts(s, r"cache manager process \d+ exited on signal 9")
    s.stop()


@scenario
def helper_and_core_killed(s):
    s.start()
    s.expect_ready()
    for _ in range(4):
        core = s.core()
        os.kill(s.helper(), signal.SIGKILL)
        os.kill(core, signal.SIGKILL)
        wait_for("another core", lambda: s.cores() and core not in s.cores())
        s.expect_ready()
        s.core()
        assert len(s.shm()) == 1, s.shm()
        assert len(s.core_family()) == 2, s.core_family()
    allow_alerts(s, r"cache manager process \d+ exited on signal 9")
    s.stop()


@scenario
def workers_do_not_say_whom_to_kill(s):
    """All that a worker can write names a victim in place of the core."""
    s.start()
    s.expect_ready()
    core = s.core()
    # a process group without its leader, as a core that died leaves one
    victim = subprocess.Popen(["sh", "-c", "sleep 60 & echo $!"],
                              stdout=subprocess.PIPE, text=True,
                              start_new_session=True)
    member = int(victim.stdout.readline())
    victim.wait(5)

    worker = s.workers()[0]
    core_bytes = struct.pack("=Q", core)
    with open(f"/proc/{worker}/maps", encoding="ascii") as maps, \
            open(f"/proc/{worker}/mem", "r+b", 0) as mem:
        for line in maps:
            fields = line.split()
            start, end = (int(x, 16) for x in fields[0].split("-"))
            if fields[1] != "rw-s" or "/dev/zero" not in line:
                continue
            mem.seek(start)
            data = mem.read(end - start)
            at = data.find(core_bytes)
            while at != -1:
                mem.seek(start + at)
                mem.write(struct.pack("=Q", victim.pid))
                at = data.find(core_bytes, at + 8)

    os.kill(s.helper(), signal.SIGKILL)
    os.kill(core, signal.SIGKILL)
    wait_for("another core", lambda: s.cores() and core not in s.cores())
    s.expect_ready()
    try:
        assert alive(member), "a process of another group was killed"
        assert f"/dev/shm/inference-core.{core}.fake" not in s.shm()
        assert len(s.core_family()) == 2, s.core_family()
    finally:
        with contextlib.suppress(OSError):
            os.kill(member, signal.SIGKILL)
    allow_alerts(s, r"cache manager process \d+ exited on signal 9")
    s.stop()


@scenario
def worker_killed(s):
    s.start()
    s.expect_ready()
    core = s.core()
    for n in range(4):
        wait_for("its workers to be connected",
                 lambda n=n: s.text().count("connected to core") == n + 2)
        worker = s.workers()[0]
        os.kill(worker, signal.SIGKILL)
        wait_for("another worker", lambda: len(s.workers()) == 2
                 and worker not in s.workers())
        s.expect_ready()
    wait_for("workers to leave the core",
             lambda: len(re.findall(r"worker \d+ has left", s.text())) == 4)
    assert s.core() == core
    allow_alerts(s, r"worker process \d+ exited on signal 9")
    s.stop()


@scenario
def master_killed(s):
    s.start()
    s.expect_ready()
    core, helper = s.core(), s.helper()
    os.kill(s.pid_file(), signal.SIGKILL)
    wait_for("the helper's end", lambda: not alive(helper), 2)
    assert s.get() == 200
    assert alive(core)
    for pid in s.workers():
        os.kill(pid, signal.SIGTERM)
    wait_for("the core's end", lambda: not alive(core))
    s.stop()


# ---- reload -----------------------------------------------------------------

@scenario
def reload_keeps_the_core(s):
    s.start()
    s.expect_ready()
    core = s.core()
    with Load(s) as load:
        for _ in range(10):
            s.reload()
    assert set(load.statuses) == {200}, load.statuses
    assert not load.errors, load.errors[:3]
    assert s.core() == core
    assert "fake core" in s.text()
    assert s.text().count("inference: configuration") == 1
    os.kill(core, signal.SIGKILL)
    s.expect_ready()
    s.stop()


@scenario
def reload_with_slow_requests(s):
    s.start()
    s.expect_ready()
    with Load(s, threads=6, path="/v2/models/slow/ready") as load:
        for _ in range(4):
            time.sleep(0.2)
            s.reload()
    assert set(load.statuses) == {200}, load.statuses
    assert not load.errors, load.errors[:3]
    s.stop()


@scenario
def reload_tells_the_core_what_changed(s):
    s.start()
    s.expect_ready()
    core = s.core()
    s.http += (" inference_repository {core}.models;"
               " inference_backend_config fake a=b c=d=e;")
    s.reload()
    s.wait_text("told of configuration 2")
    s.wait_text("core: setting fake: c=d=e")
    s.http += " inference_env INF_FAKE_ENV=new;"
    s.reload()
    s.wait_text("environment has changed")
    assert s.core() == core
    os.kill(core, signal.SIGKILL)
    s.wait_text("INF_FAKE_ENV=new")
    s.wait_text(r"fake core \d+ starts, configuration 2")
    s.expect_ready()
    s.stop()


# an unprivileged user's processes may not pass on more descriptors at a time
# than each may have open
SENDABLE = 600


@contextlib.contextmanager
def descriptors_in_flight(user):
    """More of them are sent by the user's process, and received by nobody."""
    code = """if True:
        import socket, sys
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        for _ in range(int(sys.argv[1])):
            socket.send_fds(near, [b"x"], [0] * 100)
        print(flush=True)
        sys.stdin.read()
        """
    with subprocess.Popen(["/usr/bin/python3", "-c", code,
                           str(SENDABLE // 100 + 1)], user=user,
                          stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"\n"
        yield


@scenario
def configuration_waits_until_it_can_be_sent(s):
    if os.geteuid() != 0 or must_stay_root():
        return
    s.run_as_nobody()
    s.main = f"worker_rlimit_nofile {SENDABLE};"
    s.start()
    s.expect_ready()
    core = s.core()
    s.http += " inference_backend_config fake a=b;"
    with descriptors_in_flight(s.as_user):
        s.reload()
        s.wait_text(f"core {core} is watched")
        assert "told of configuration" not in s.text()
    s.wait_text("told of configuration 2")
    s.expect_ready()
    assert s.core() == core
    s.stop()


@scenario
def failed_reload_changes_nothing(s):
    s.start()
    s.expect_ready()
    core = s.core()
    good = s.http
    s.http += " inference_repository relative;"
    s.write_config()
    s.send(signal.SIGHUP)
    s.wait_text("is not absolute")
    s.http = good
    assert s.get() == 200
    s.reload()
    assert s.core() == core
    allow_alerts(s, r"is not absolute")
    s.stop()


@scenario
def directives_removed_and_put_back(s):
    s.start()
    s.expect_ready()
    core = s.core()
    before = (s.http, s.location)
    s.http, s.location = "", "return 404;"
    s.reload()
    wait_for("the core's end", lambda: not alive(core))
    assert s.get() == 404
    wait_for("the helper's end", lambda: not s.helpers())
    s.http, s.location = before
    s.reload()
    s.expect_ready()
    s.load_module = False
    s.http, s.location = "", "return 404;"
    s.reload()
    wait_for("the core's end", lambda: not s.cores())
    s.load_module = True
    s.http, s.location = before
    s.reload()
    s.expect_ready()
    s.stop()


@scenario
def more_workers_by_reload(s):
    s.main = "worker_processes 1;"
    s.start()
    s.expect_ready()
    core = s.core()
    s.main = "daemon off; worker_processes 4;"
    s.reload()
    wait_for("four channels", lambda: s.text().count(
        f"connected to core {core}") == 5)
    assert s.core() == core
    s.stop()


# ---- binary upgrade ---------------------------------------------------------

def upgrade(s):
    old = s.pid_file()
    os.kill(old, signal.SIGUSR2)
    wait_for("the new binary", lambda: s.pid_file() not in (0, old))
    new = s.pid_file()
    wait_for("its workers", lambda: len(s.workers()) == 4)
    return old, new


@scenario
def binary_upgrade(s):
    s.main = "daemon on;"
    s.environment["INF_FAKE_ENV"] = "of the first master"
    s.start()
    s.expect_ready()
    core = s.core()
    with Load(s) as load:
        old, new = upgrade(s)
        os.kill(old, signal.SIGWINCH)
        wait_for("old workers' end", lambda: len(s.workers()) == 2)
        os.kill(old, signal.SIGQUIT)
        wait_for("old master's end", lambda: not alive(old))
    assert set(load.statuses) == {200}, load.statuses
    assert not load.errors, load.errors[:3]
    assert s.core() == core
    os.kill(core, signal.SIGKILL)
    s.expect_ready()
    wait_for("the first environment", lambda: s.text().count(
        "INF_FAKE_ENV=of the first master") == 2)
    s.stop()


@scenario
def binary_upgrade_taken_back(s):
    s.main = "daemon on;"
    s.start()
    s.expect_ready()
    core = s.core()
    old, new = upgrade(s)
    os.kill(core, signal.SIGKILL)
    wait_for("another core", lambda: s.cores() and core not in s.cores())
    s.expect_ready()
    time.sleep(0.5)
    second = s.core()
    os.kill(old, signal.SIGHUP)
    os.kill(new, signal.SIGQUIT)
    wait_for("the new master's end", lambda: not alive(new))
    assert s.get() == 200
    assert s.core() == second
    wait_for("the old pid file", lambda: s.pid_file() == old)
    s.stop()


# ---- ends -------------------------------------------------------------------

@scenario
def quit_lets_requests_finish(s):
    s.start()
    s.expect_ready()
    results = []
    t = threading.Thread(
        target=lambda: results.append(s.get("/v2/models/slow/ready")))
    t.start()
    time.sleep(0.15)
    s.stop(signal.SIGQUIT)
    t.join()
    assert results == [200], results


@scenario
def term_ends_all_at_once(s):
    s.start()
    s.expect_ready()
    t = threading.Thread(target=lambda: s.get("/v2/models/never/ready"))
    t.start()
    time.sleep(0.15)
    seconds = s.stop(signal.SIGTERM)
    t.join()
    assert seconds < 2, seconds


# ---- requests ---------------------------------------------------------------

@scenario
def client_that_leaves_cancels(s):
    s.start()
    s.expect_ready()
    for n in range(20):
        with socket.create_connection(("127.0.0.1", s.port)) as c:
            c.sendall(b"GET /v2/models/never/ready HTTP/1.1\r\n"
                      b"Host: x\r\n\r\n")
            if n % 2:
                time.sleep(0.02)
    wait_for("20 cancels", lambda: s.text().count("core: cancelled") == 20)
    s.expect_ready()
    s.stop()


@scenario
def requests_wait_for_the_first_core(s):
    s.start(workers=1)
    assert s.get("/v2/models/x/ready") == 200
    s.stop()


# ---- ways to run ------------------------------------------------------------

@scenario
def log_follows_usr1(s):
    s.start()
    s.expect_ready()
    moved = s.folder / "error.log.1"
    s.log.rename(moved)
    s.send(signal.SIGUSR1)
    wait_for("a new log", s.log.exists)
    time.sleep(0.2)
    os.kill(s.core(), signal.SIGKILL)
    s.wait_text(r"core: fake core \d+ starts")
    assert moved.read_text().count("fake core writes to stdout") == 1
    s.stop()


@scenario
def output_that_nobody_reads_holds_up_nobody(s):
    s.start()
    s.expect_ready()
    helper = s.helper()
    os.kill(helper, signal.SIGSTOP)
    started = time.monotonic()
    status = s.get("/v2/models/chatty/ready")
    os.kill(helper, signal.SIGCONT)
    assert status == 200
    assert time.monotonic() - started >= 1      # nothing is lost at once
    s.wait_text("stdout takes no more")
    s.stop()


@scenario
def secrets_stay_out_of_workers(s):
    s.http += " inference_env INF_FAKE_SECRET=nobody-may-read-this;"
    s.main += " env INF_FAKE_PLAIN;"
    s.environment["INF_FAKE_INHERITED"] = "nor-may-this-be-read"
    s.environment["INF_FAKE_PLAIN"] = "workers-have-this"
    s.start()
    s.expect_ready()
    for worker in s.workers():
        names = [os.readlink(p) for p in glob.glob(f"/proc/{worker}/fd/*")
                 if os.path.islink(p)]
        assert not any("environment" in n or "configuration" in n
                       for n in names), names
        memory = writable_memory(worker)
        assert b"nobody-may-read-this" not in memory
        assert b"nor-may-this-be-read" not in memory
        assert b"INF_FAKE_PLAIN=workers-have-this" in memory
    with open(f"/proc/{s.core()}/environ", "rb") as f:
        environ = f.read()
    assert b"INF_FAKE_SECRET=nobody-may-read-this" in environ
    assert b"INF_FAKE_INHERITED=nor-may-this-be-read" in environ
    assert "nobody-may-read-this" not in s.text()
    s.stop()


def writable_memory(pid):
    parts = []
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, \
            open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            fields = line.split()
            start, end = (int(x, 16) for x in fields[0].split("-"))
            if ("w" not in fields[1] or "memfd" in line or "[v" in line
                    or end - start > 1 << 30):
                continue
            with contextlib.suppress(OSError, ValueError, OverflowError):
                mem.seek(start)
                parts.append(mem.read(end - start))
    return b"".join(parts)


def seqpacket_sockets(pid):
    """Copies of the UNIX SEQPACKET sockets that a process holds."""
    found = []
    pidfd = os.pidfd_open(pid)
    for name in os.listdir(f"/proc/{pid}/fd"):
        fd = LIBC.syscall(SYS_PIDFD_GETFD, pidfd, int(name), 0)
        if fd < 0 and ctypes.get_errno() == errno.EBADF:
            continue                         # closed since it was listed
        assert fd >= 0, os.strerror(ctypes.get_errno())
        if not os.readlink(f"/proc/self/fd/{fd}").startswith("socket:"):
            os.close(fd)
            continue
        s = socket.socket(fileno=fd)
        if s.family == socket.AF_UNIX and s.type == socket.SOCK_SEQPACKET:
            found.append(s)
        else:
            s.close()
    os.close(pidfd)
    return found


@scenario
def only_the_supervisor_configures_the_core(s):
    if must_stay_root():
        return
    s.start()
    s.expect_ready()
    config = 2
    message = struct.pack("=Q8I3Q40s", 0x314e4843464e49, 2, 1, 104, config,
                          0, 0, 0, 0, 0, 0, 999, b"")
    empty = os.memfd_create("config", os.MFD_ALLOW_SEALING)
    fcntl.fcntl(empty, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK
                | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)

    def send_by(pid):
        for held in seqpacket_sockets(pid):
            with held, contextlib.suppress(OSError):
                socket.send_fds(held, [message], [empty])

    for worker in s.workers():
        send_by(worker)
    s.wait_text("worker rejected")           # it was read, and by whom
    s.reload()
    s.expect_ready()
    assert "told of configuration 999" not in s.text()
    send_by(s.helper())
    s.wait_text("told of configuration 999")
    os.close(empty)
    s.stop()


@scenario
def no_descriptor_leaks(s):
    s.start()
    s.expect_ready()

    def count():
        s.expect_ready()
        time.sleep(0.3)
        return [len(os.listdir(f"/proc/{p}/fd")) for p in
                (s.pid_file(), s.helper(), *s.workers())]

    for _ in range(2):
        os.kill(s.core(), signal.SIGKILL)
        s.expect_ready()
        s.reload()
    time.sleep(1.5)
    first = count()
    for n in range(4):
        os.kill(s.core(), signal.SIGKILL)
        s.expect_ready()
        s.http += f" inference_backend_config fake k{n}=v;"
        s.reload()
    time.sleep(1.5)
    assert count() == first, (first, count())
    s.stop()


@scenario
def daemon_on(s):
    s.main = "daemon on;"
    s.start()
    s.expect_ready()
    os.kill(s.core(), signal.SIGKILL)
    s.expect_ready()
    s.stop()


@scenario
def without_master(s):
    s.main = "daemon off; master_process off; worker_processes 1;"
    s.start()
    s.expect_ready()
    core = s.core()
    os.kill(core, signal.SIGKILL)
    s.expect_ready()
    assert s.core() != core
    s.stop()


@scenario
def without_root(s):
    if os.geteuid() != 0 or must_stay_root():
        return
    s.run_as_nobody()
    s.start()
    s.expect_ready()
    os.kill(s.core(), signal.SIGKILL)
    s.expect_ready()
    s.reload()
    s.expect_ready()
    s.stop()


@scenario
def beside_a_proxy_cache(s):
    s.http += " proxy_cache_path {core}.cache keys_zone=z:1m;"
    s.start()
    s.expect_ready()
    core = s.core()
    s.reload()
    os.kill(core, signal.SIGKILL)
    s.expect_ready()
    s.stop()


# ---- running ----------------------------------------------------------------

ALLOWED = {}


def allow_alerts(s, pattern):
    ALLOWED.setdefault(s, []).append(pattern)


def check_log(s):
    for line in s.text().splitlines():
        if re.search(r"\[(alert|emerg|crit)\]", line) and not any(
                re.search(p, line) for p in ALLOWED.get(s, [])):
            raise AssertionError(f"in the log: {line}")
        if "ERROR: AddressSanitizer" in line or "runtime error:" in line:
            raise AssertionError(f"sanitizer: {line}")


def run(function, options):
    with tempfile.TemporaryDirectory(prefix="ngx-fake-") as folder:
        os.chmod(folder, 0o755)
        s = Server(options, folder)
        shm = set(s.shm())
        try:
            function(s)
            left = [p for p in s.processes()]
            assert not left, f"processes left: {left}"
            assert set(s.shm()) <= shm, f"left in /dev/shm: {s.shm()}"
            check_log(s)
        except BaseException:
            s.kill_all()
            for name in set(s.shm()) - shm:
                os.unlink(name)
            traceback.print_exc()
            sys.stdout.write(s.text()[-6000:] if not options.quiet else "")
            keep = pathlib.Path("/tmp") / f"ngx-fake-{function.__name__}.log"
            keep.write_text(s.text())
            print(f"FAILED {function.__name__}, its log is {keep}",
                  flush=True)
            return False
    print(f"ok     {function.__name__}", flush=True)
    return True


def build_core(folder):
    gen = pathlib.Path(folder) / "gen"
    gen.mkdir()
    subprocess.run(
        ["protoc-c", f"--c_out={gen}", f"-I{ROOT}/core/proto",
         str(ROOT / "core/proto/core_config.proto")], check=True)
    core = pathlib.Path(folder) / "fake-core"
    sources = [ROOT / "t/ngx-fake/core.c", gen / "core_config.pb-c.c",
               *(ROOT / "core/base").glob("*.c"),
               ROOT / "core/base/os/mapped_files.c",
               *(p for p in (ROOT / "core/wire").glob("*.c")
                 if not p.name.startswith("client"))]
    subprocess.run(
        [os.environ.get("CC", "cc"), "-std=gnu17", "-g", "-O1", "-Wall",
         "-Wextra", "-D_GNU_SOURCE", "-fno-strict-aliasing",
         f"-I{ROOT}", f"-I{ROOT}/core/include", f"-I{gen}",
         *map(str, sources), "-o", str(core), "-lprotobuf-c", "-lpthread",
         "-lm"],
        check=True)
    return core


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--module", default=str(
        ROOT / "build/ngx_http_inference_module.so"))
    parser.add_argument("--core")
    parser.add_argument("--nginx", default=shutil.which("nginx"))
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()

    wanted = [f for f in SCENARIOS
              if not options.names or f.__name__ in options.names]
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        if options.core is None:
            options.core = build_core(folder)
        failed = sum(not run(f, options) for f in wanted)

    print(f"{len(wanted) - failed} of {len(wanted)} scenarios passed")
    return 1 if failed or not wanted else 0


if __name__ == "__main__":
    sys.exit(main())
