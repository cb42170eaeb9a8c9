"""An nginx of our own with the module, and what it must leave behind.

Server starts it in its own directory, waits until the models are ready and,
in stop(), looks for everything that must not be there afterwards: alerts in
the log, sanitizer reports, living processes, sockets, shared memory.
"""

import collections
import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid

from lib import process, wire

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("INF_BUILD", "build"))
BUILD = BUILD if BUILD.is_absolute() else ROOT / BUILD
NGINX = os.environ.get("INF_NGINX") or shutil.which("nginx") \
    or "/usr/sbin/nginx"
MODULE = pathlib.Path(os.environ.get(
    "INF_MODULE", BUILD / "ngx_http_inference_module.so"))
CORE = BUILD / "inference-core"
BACKENDS = BUILD / "backends"

SANITIZER = {"build-asan": "asan", "build-tsan": "tsan"}.get(BUILD.name, "")
SLOW = {"asan": 4, "tsan": 8}.get(SANITIZER, 1)     # times are multiplied

ALARM = re.compile(r"\[(alert|emerg|crit)\]")
SANITIZER_LINE = re.compile(
    r"(Address|Leak|Thread|UndefinedBehavior)Sanitizer|runtime error:")

CONFIG = """\
load_module {module};
daemon {daemon};
master_process on;
worker_processes {workers};
user {user};
pid {prefix}/nginx.pid;
error_log {prefix}/error.log {log_level};
{main}
events {{ worker_connections {connections}; }}
http {{
    access_log {access_log};
    client_body_temp_path {prefix}/temp/body;
    proxy_temp_path {prefix}/temp/proxy;
    fastcgi_temp_path {prefix}/temp/fastcgi;
    uwsgi_temp_path {prefix}/temp/uwsgi;
    scgi_temp_path {prefix}/temp/scgi;
    inference_core {core}{core_options};
    inference_repository {models};
    inference_backends {backends};
{environment}{http}
    server {{
        listen 127.0.0.1:{port};
        location / {{ inference {parts}; }}
        location /unlimited/ {{ inference infer; inference_max_body 0; }}
{server}
    }}
}}
"""


GIVEN = set()           # ports, which servers may not have taken yet


def free_port():
    """Another one each time."""
    while True:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        if port not in GIVEN:
            GIVEN.add(port)
            return port


def sanitizer_runtime(name):
    out = subprocess.run(["gcc", f"-print-file-name=lib{name}.so"],
                         capture_output=True, text=True, check=True)
    return os.path.realpath(out.stdout.strip())


def has_http3():
    """Whether this nginx serves HTTP/3."""
    said = subprocess.run([NGINX, "-V"], capture_output=True, text=True,
                          check=True).stderr
    return "http_v3_module" in said


def shm_names():
    return set(os.listdir("/dev/shm"))


class Adopted:
    """A process that is our child because its parent has ended, as a Popen;
    until then it is only looked at."""

    def __init__(self, pid):
        self.pid = pid
        self.returncode = None

    def poll(self):
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                if process.alive(self.pid):
                    return None
                pid, status = self.pid, 0       # its parent has waited
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, seconds=20):
        process.wait_until(lambda: self.poll() is not None, seconds)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", seconds)
        return self.returncode

    def send_signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)


class Server:
    running = []        # every server that was started and not yet stopped

    def __init__(self, models=None, *, workers=1, user="root",
                 log_level="info", connections=512, main="", http="",
                 server="", parts="health metadata config infer", env=None,
                 core=CORE, backends=BACKENDS, access_log="off",
                 inference_env=(), allow_alarms=(), config=None,
                 session=True, http2=False, daemon=False):
        """models: a function that fills a repository directory, or a directory.

        http2: the server listens on port2, too, where it speaks HTTP/2.

        daemon: nginx detaches itself; nginx takes WINCH from nobody else.

        session: of its own.  The kernel may share the CPU out between sessions
        first, so a client on this machine that is to stand for one elsewhere
        is better in the same one.

        config: a whole nginx.conf instead (same {fields} in CONFIG's braces).
        """
        self.id = uuid.uuid4().hex[:12]
        self.session = session
        self.prefix = pathlib.Path(tempfile.mkdtemp(prefix="inf-t-"))
        self.prefix.chmod(0o755)
        (self.prefix / "temp").mkdir()
        self.models = self.prefix / "models"
        if models is None or callable(models):
            self.models.mkdir()
            if models:
                models(self.models)
        else:
            self.models = pathlib.Path(models)
        self.port = free_port()
        self.port2 = None
        if http2:
            self.port2 = free_port()
            server = (f"        listen 127.0.0.1:{self.port2} http2;\n"
                      f"{server}")
        self.log = self.prefix / "error.log"
        self.conf = self.prefix / "nginx.conf"
        self.allow_alarms = [re.compile(a) for a in allow_alarms]
        self.process = None
        self.seen = 0           # bytes of the log already checked
        self.shm = shm_names()
        self.env = dict(os.environ, INF_TEST_SERVER=self.id, **(env or {}))
        self._sanitize()
        inference_env = list(inference_env) + self.core_env
        self.daemon = daemon
        if daemon:              # for the binary that an upgrade starts
            main += "".join(f"env {name};\n" for name in (
                "INF_TEST_SERVER", "LD_PRELOAD", "ASAN_OPTIONS",
                "UBSAN_OPTIONS") if name in self.env)
        self.fields = dict(
            daemon="on" if daemon else "off", module=MODULE, workers=workers,
            user=user, prefix=self.prefix, log_level=log_level, main=main,
            connections=connections, access_log=access_log, core=core,
            # LeakSanitizer traces the process that it examines, and where
            # we may not trace others, we look into those of our user
            core_options="" if process.may_trace() and not SANITIZER
            else " dump=on", models=self.models,
            backends=backends, http=http, server=server, port=self.port,
            parts=parts, environment="".join(
                f"    inference_env {e};\n" for e in inference_env))
        self.write_config(config or CONFIG)

    def write_config(self, template=CONFIG, **changes):
        self.fields.update(changes)
        self.conf.write_text(template.format(**self.fields),
                             encoding="utf-8")

    def _sanitize(self):
        self.core_env = []
        if SANITIZER == "asan":
            preload = sanitizer_runtime("asan")
            log = self.prefix / "asan"
            self.env["LD_PRELOAD"] = " ".join(
                filter(None, [preload, self.env.get("LD_PRELOAD")]))
            self.env["ASAN_OPTIONS"] = (
                f"detect_leaks=0:log_path={log}:"
                "detect_odr_violation=0:abort_on_error=0")
            # nginx frees little at exit; the core must free everything.
            # OpenVINO gives a thread another signal stack, which ASan would
            # unmap for its own.
            self.core_env = [
                '"ASAN_OPTIONS=detect_leaks=1:use_sigaltstack=0:'
                f'log_path={log}:detect_odr_violation=0"',
                f'"LSAN_OPTIONS=suppressions={ROOT}/t/lib/lsan.supp:'
                'print_suppressions=0"',
                "TBB_ENABLE_SANITIZERS=1"]      # OpenVINO's: no RTLD_DEEPBIND
            self.env["UBSAN_OPTIONS"] = f"print_stacktrace=1:log_path={log}"
        elif SANITIZER == "tsan":
            log = self.prefix / "tsan"
            self.core_env = [
                f'"TSAN_OPTIONS=log_path={log}:'
                f'suppressions={ROOT}/t/lib/tsan.supp"']

    # ---- life

    def command(self, *arguments):
        return [NGINX, "-p", str(self.prefix), "-c", str(self.conf),
                *arguments]

    def check_config(self, pass_fds=()):
        """nginx -t: (exit status, output)."""
        done = subprocess.run(
            self.command("-t", "-e", str(self.log)), env=self.env,
            capture_output=True, text=True, errors="replace",
            pass_fds=pass_fds, timeout=60 * SLOW, check=False)
        return done.returncode, done.stdout + done.stderr

    def start(self, wait="ready", seconds=30):
        """wait: "ready" (all models), "live" (a core that answers), or "" (only
        for the master)."""
        self.process = subprocess.Popen(
            self.command("-e", str(self.log)), env=self.env,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=open(self.prefix / "stderr", "wb"),
            start_new_session=self.session,
            process_group=None if self.session else 0)
        Server.running.append(self)
        process.wait_until(lambda: self.pid_file() or not self.daemon
                           and self.process.poll() is not None, 20 * SLOW)
        if self.daemon:
            self.adopt(self.pid_file())
        states = {"ready": (200,), "live": (200, 400), "": ()}[wait]
        if states and not process.wait_until(
                lambda: self.status("/v2/health/ready") in states
                or self.process.poll() is not None, seconds * SLOW) \
                or wait and self.process.poll() is not None:
            text = "".join(
                line for line in self.log_text().splitlines(keepends=True)
                if "closed keepalive" not in line)[-6000:] \
                + self.stderr_text()
            self.kill()
            raise AssertionError(
                f"server was not {wait} in {seconds * SLOW} s\n{text}")
        return self

    def pid_file(self, suffix=""):
        """0: there is none yet."""
        try:
            return int((self.prefix / f"nginx.pid{suffix}").read_text())
        except (FileNotFoundError, ValueError):
            return 0

    def adopt(self, pid):
        """The master is this process from now on."""
        self.process = Adopted(pid)

    def wait_for(self, path, seconds=30, status=200):
        return process.wait_until(
            lambda: self.status(path) == status
            or self.process.poll() is not None, seconds * SLOW, 0.02) \
            and self.process.poll() is None

    def status(self, path):
        """Status of a GET; 0 when there was no answer."""
        try:
            return wire.fetch(self.port, "GET", path).status
        except (OSError, ValueError):
            return 0

    def signal(self, name):
        self.process.send_signal(getattr(signal, "SIG" + name))

    def reload(self, seconds=30):
        """HUP; waits until other workers have taken the place of all."""
        old = set(self.workers())
        self.signal("HUP")
        assert process.wait_until(
            lambda: (now := set(self.workers())) and not now & old,
            seconds * SLOW), f"workers {old} have not left"

    def stop(self, name="QUIT", check=True, seconds=20):
        """Ends the server; with check, fails if anything was left."""
        if self.process is None:
            self._remove()
            return
        pids = self.processes()
        if self.process.poll() is None:
            self.signal(name)
        try:
            status = self.process.wait(seconds * SLOW)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(
                f"nginx did not end {seconds * SLOW} s after SIG{name}:\n"
                + self.log_text()[-4000:]) from None
        Server.running.remove(self)
        self.process = None
        try:
            if check:
                assert status == 0, f"nginx exit status {status}\n" \
                    + self.log_text()[-4000:]
                self.check_left(pids)
                self.check_log()
        finally:
            self._end_leaked()
            self._remove()

    def _remove(self):
        if not os.environ.get("INF_KEEP"):
            shutil.rmtree(self.prefix, ignore_errors=True)

    def kill(self):
        """Ends everything of this server at once."""
        if self.process is not None:
            # the master alone would leave its workers: they stay and serve
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self._end_leaked()
        if self in Server.running:
            Server.running.remove(self)
        self.process = None

    def _mine(self):
        """Living processes of this server, orphans included."""
        return [p for p in process.descendants(os.getpid())
                if process.environ(p).get("INF_TEST_SERVER") == self.id
                or str(self.prefix) in process.cmdline(p)]

    def _end_leaked(self):
        for pid in self._mine():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        process.reap_orphans({s.process.pid for s in Server.running
                              if s.process})

    def __enter__(self):
        return self if self.process else self.start()

    def __exit__(self, kind, *_):
        if self.process is None:
            return
        if kind:
            self.kill()
        else:
            self.stop()

    # ---- looking inside

    def processes(self):
        return [self.process.pid] + process.descendants(self.process.pid)

    def cores(self):
        """Pids of living cores of this server."""
        mine = set(self._mine())
        if self.process:
            mine.update(process.descendants(self.process.pid))
        result = []
        for p in mine:
            s = process.stat(p)
            if s and s[0] == "inference-core" and s[1] not in "ZX":
                result.append(p)
        return sorted(result)

    def core(self, seconds=10):
        """The one core's pid."""
        cores = process.wait_until(
            lambda: len(c := self.cores()) == 1 and c, seconds * SLOW)
        assert cores, f"cores: {self.cores()}"
        return cores[0]

    def next_core(self, core, seconds=60):
        """Waits until another core has followed this one."""
        assert process.wait_until(
            lambda: self.cores() and core not in self.cores(),
            seconds * SLOW), f"core {core} has no successor: {self.cores()}"

    def end_core(self, name="KILL"):
        """Ends the core by a signal, and returns its pid when the next one is
        there."""
        core = self.core()
        os.kill(core, getattr(signal, f"SIG{name}"))
        self.next_core(core)
        return core

    def titled(self, words):
        """Pids below the master whose command line contains words."""
        return [p for p in process.descendants(self.process.pid)
                if words in process.cmdline(p)]

    def workers(self):
        return self.titled("worker process")

    def kinds(self):
        """How many living processes of this server have which name, orphans
        included."""
        found = {self.process.pid, *process.descendants(self.process.pid),
                 *self._mine()}
        return collections.Counter(
            s[0] for s in map(process.stat, found) if s and s[1] not in "ZX")

    def shared_names(self):
        """Names in /dev/shm that are new and hold the pid of a core of this
        server; others' servers may run at the same time."""
        cores = set(re.findall(r"\bcore (\d+) started", self.log_text()))
        return sorted(n for n in shm_names() - self.shm
                      if cores & set(re.split("[^0-9A-Za-z]", n)))

    def supervisors(self):
        return self.titled("nginx: ") and [
            p for p in self.titled("nginx: ")
            if "worker process" not in process.cmdline(p)]

    def log_text(self):
        try:
            return self.log.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""

    def stderr_text(self):
        return (self.prefix / "stderr").read_text(
            encoding="utf-8", errors="replace")

    def wait_log(self, pattern, seconds=10):
        """The first match of pattern in the log; fails when none comes."""
        found = process.wait_until(
            lambda: re.search(pattern, self.log_text()), seconds * SLOW)
        assert found, f"no {pattern!r} in the log:\n{self.log_text()[-4000:]}"
        return found

    def wait_said(self, text, times=1, seconds=10):
        """Until text is in the log so many times, and not more; what the core
        says comes there a bit later."""
        process.wait_until(lambda: self.log_text().count(text) >= times,
                           seconds * SLOW)
        said = self.log_text().count(text)
        assert said == times, f"{text!r}: {said} times\n" \
            + self.log_text()[-4000:]

    # ---- checks

    def check_log(self):
        """Fails on alarms and sanitizer reports new since the last call."""
        text = self.log_text()
        new, self.seen = text[self.seen:], len(text)
        bad = [line for line in (new + self.stderr_text()).splitlines()
               if SANITIZER_LINE.search(line)
               or ALARM.search(line)
               and not any(a.search(line) for a in self.allow_alarms)]
        for kind in ("asan", "tsan"):
            for report in self.prefix.glob(kind + ".*"):
                bad.append(report.read_text(errors="replace")[:6000])
                report.unlink()
        assert not bad, "\n".join(bad)

    def check_left(self, pids):
        """Fails if a process, socket or shared memory of ours is left."""
        left = process.wait_until(
            lambda: not (self._mine()
                         or [p for p in pids if process.alive(p)]),
            10 * SLOW)
        assert left, "left running: " + ", ".join(
            f"{p} {process.cmdline(p)}" for p in
            set(self._mine() + [p for p in pids if process.alive(p)]))
        new = self.shared_names()
        assert not new, f"left in /dev/shm: {new}"
        sockets = [p for p in self.prefix.rglob("*") if p.is_socket()]
        assert not sockets, f"left sockets: {sockets}"
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("127.0.0.1", self.port))

    # ---- requests

    def wire(self, timeout=20.0):
        return wire.Wire(self.port, timeout * SLOW)

    def get(self, path, headers=None):
        with self.wire() as connection:
            return connection.request("GET", path, headers=headers)

    def post(self, path, body, headers=None):
        with self.wire() as connection:
            return connection.request("POST", path, body, headers)

    def infer(self, model, header, tail=b"", headers=None, version=""):
        with self.wire() as connection:
            return connection.infer(model, header, tail, headers, version)

    @property
    def url(self):
        return f"127.0.0.1:{self.port}"


def nap(seconds):
    """For what cannot be waited for: that something does NOT happen."""
    time.sleep(seconds)
