"""A core that was started elsewhere, as another user: who may connect to it,
its end, and its unit for systemd."""

import os
import re
import shutil
import signal
import subprocess
import tempfile

import pytest

from lib import models, process
from lib.load import Load
from lib.server import BACKENDS, BUILD, CORE, ROOT, SANITIZER, SLOW, Server
from lib.wire import tensor

SMALL = {"inputs": [tensor("IN", "INT32", [2], [1, 2])]}
DAEMON = "daemon daemon"

pytestmark = pytest.mark.skipif(
    SANITIZER == "tsan", reason="TSan gives no signal to a thread that waits "
    "in a system call of its own, and SIGTERM ends such a core")


class ExternalCore:
    """inference-core --config, as the user nobody, in its own directory."""

    def __init__(self, users):
        self.folder = tempfile.mkdtemp(prefix="inf-t-external-")
        os.chmod(self.folder, 0o755)
        os.mkdir(f"{self.folder}/models")
        models.standard_repository(f"{self.folder}/models")
        models.identity(f"{self.folder}/models", "slow",
                        [("IN", "INT32", [-1])], instances=4,
                        parameters={"execute_delay_ms": "300"})
        os.mkdir(f"{self.folder}/run")
        shutil.chown(f"{self.folder}/run", "nobody")
        self.socket = f"{self.folder}/run/core"
        with open(f"{self.folder}/core.conf", "w", encoding="ascii") as f:
            f.write(f"external_path: '{self.socket}'\n"
                    f"repositories: '{self.folder}/models'\n"
                    f"backend_directories: '{BACKENDS}'\n"
                    + "".join(f"external_users: '{u}'\n" for u in users))
        self.log = open(f"{self.folder}/log", "w+", encoding="utf-8")
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [CORE, "--config", f"{self.folder}/core.conf"], user="nobody",
            group="nogroup", extra_groups=[], stderr=self.log,
            stdout=self.log)

    def restart(self, name):
        """As systemd does after any end."""
        self.process.send_signal(getattr(signal, f"SIG{name}"))
        status = self.process.wait(60 * SLOW)
        self.start()
        return status

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30 * SLOW) == 0
        self.log.close()
        shutil.rmtree(self.folder)

    def text(self):
        self.log.seek(0)
        return self.log.read()

    def wait(self, words):
        assert process.wait_until(lambda: words in self.text(), 20 * SLOW), \
            self.text()


def once(model):
    def ask(connection):
        answer = connection.infer(model, SMALL)
        if answer.status != 200:
            print(answer)
        return answer.status
    return ask


def server(core, user, http=""):
    s = Server(user=user, log_level="info", allow_alarms=["no welcome"])
    s.fields["core_options"] = f" external={core.socket}"
    s.write_config(http=http)
    return s


@pytest.mark.parametrize("users", [["daemon"], ["1"], ["bin", "daemon"]])
def test_a_user_of_the_list_is_served(users):
    with ExternalCore(users) as core:
        core.wait("model=id_int32 version=1 is ready")
        assert os.stat(core.socket).st_mode & 0o777 == 0o666
        with server(core, DAEMON).start() as s:
            answer = s.wire().infer("id_int32", SMALL)
            assert answer.json()["outputs"][0]["data"] == [1, 2]


@pytest.mark.parametrize("users", [["bin"], ["0"]])
def test_another_user_is_not(users):
    with ExternalCore(users) as core:
        core.wait("model=id_int32 version=1 is ready")
        with server(core, DAEMON).start(wait="") as s:
            core.wait("uid 1 may not connect")
            assert s.status("/v2/health/ready") == 503


def test_without_a_list_the_socket_is_closed_to_others():
    with ExternalCore([]) as core:
        core.wait("model=id_int32 version=1 is ready")
        assert os.stat(core.socket).st_mode & 0o777 == 0o600
        with server(core, "root").start() as s:         # root always may
            assert s.wire().infer("id_int32", SMALL).status == 200


def test_a_core_that_is_not_there_is_asked_for_without_end(tmp_path):
    """Each attempt gives back what it took."""
    s = Server(log_level="info")
    s.fields["core_options"] = f" external={tmp_path}/core"
    s.write_config()
    with s.start(wait=""):
        def attempts():
            return s.log_text().count("cannot connect to the core")

        assert process.wait_until(lambda: attempts() > 1, 20 * SLOW)
        worker, = s.workers()
        before = len(os.listdir(f"/proc/{worker}/fd"))
        more = attempts() + 4
        assert process.wait_until(lambda: attempts() >= more, 20 * SLOW)
        # the last attempt may be under way
        assert len(os.listdir(f"/proc/{worker}/fd")) <= before + 2
        reason = (f"the inference core is not running: cannot connect to "
                  f"{tmp_path}/core: No such file or directory")
        ready = s.get("/v2/health/ready")
        assert (ready.status, ready.error) == (503, reason)
        with s.wire(60 * SLOW) as connection:       # it waits for 10 s
            answer = connection.infer("id_int32", SMALL)
        assert (answer.status, answer.error) == (503, reason)
        assert int(answer.headers["retry-after"]) > 0
        s.wait_log("the core is out of reach for 10 s")


@pytest.mark.parametrize("name,status", [("QUIT", 0), ("TERM", 0),
                                         ("KILL", -9)])
def test_requests_go_to_the_next_core(name, status):
    """They wait until it has loaded its models, too.  A request may be
    executing at each of three ends, so it has four tries."""
    with ExternalCore(["daemon"]) as core:
        core.wait("model=slow version=1 is ready")
        with server(core, DAEMON, "    inference_tries 4;\n").start() as s, \
                Load(s.port, once("id_int32"), patience=60.0 * SLOW) as load, \
                Load(s.port, once("slow"), patience=60.0 * SLOW) as slow:
            for _ in range(3):
                load.wait_for_more(50, 60 * SLOW)
                slow.wait_for_more(24, 60 * SLOW)
                assert core.restart(name) == status
            load.wait_for_more(50, 60 * SLOW)
            slow.wait_for_more(24, 60 * SLOW)
    assert set(load.results) == {200}, load.results
    assert set(slow.results) == {200}, slow.results


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """conf.d and the programs, under a prefix of their own."""
    prefix = tmp_path_factory.mktemp("installed")
    prefix.chmod(0o755)
    subprocess.run(["sh", "tools/install.sh", BUILD, prefix], cwd=ROOT,
                   check=True)
    return prefix


def test_the_unit_starts_what_is_installed(installed):
    unit = installed / "lib/systemd/system/inference-core.service"
    text = unit.read_text()
    command, = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
    program, option, _ = command.split()
    assert program == f"{installed}/lib/nginx-inference/inference-core"
    assert os.access(program, os.X_OK) and option == "--config"
    for line in ("KillSignal=SIGQUIT", "KillMode=mixed", "Restart=always",
                 "OOMPolicy=continue"):
        assert line in text.splitlines()
    if not shutil.which("systemd-analyze"):
        return
    for command in (["verify"], ["security", "--offline=yes",
                                 "--threshold=60"]):
        done = subprocess.run(
            ["systemd-analyze", *command, unit], capture_output=True,
            text=True, timeout=60 * SLOW, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert unit.name not in done.stderr, done.stderr


def test_the_configuration_of_the_unit_serves(installed, tmp_path):
    """Other paths and users, and nothing else."""
    text = (installed / "share/nginx-inference/conf.d/inference-core.pbtxt"
            ).read_text()
    (tmp_path / "models").mkdir()
    models.standard_repository(tmp_path / "models")
    for old, new in (("/run/inference-core/socket", f"{tmp_path}/socket"),
                     ("/srv/models", f"{tmp_path}/models"),
                     ("www-data", "daemon")):
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "core.pbtxt").write_text(text)
    tmp_path.chmod(0o755)
    with subprocess.Popen(
            [installed / "lib/nginx-inference/inference-core", "--config",
             tmp_path / "core.pbtxt"], stderr=subprocess.DEVNULL) as core:
        try:
            s = Server(user=DAEMON, log_level="info")
            s.fields["core_options"] = f" external={tmp_path}/socket"
            s.write_config()
            with s.start():
                assert s.wire().infer("id_int32", SMALL).status == 200
        finally:
            core.send_signal(signal.SIGQUIT)
        assert core.wait(60 * SLOW) == 0
    assert not (tmp_path / "socket").exists()


def core_alone(path):
    """The command of a core with no model and no nginx."""
    (path / "models").mkdir()
    (path / "core.conf").write_text(
        f"external_path: '{path}/socket'\n"
        f"repositories: '{path}/models'\n")
    return [CORE, "--config", path / "core.conf"]


@pytest.mark.parametrize("taken", [True, False])
def test_a_core_removes_its_own_socket_alone(tmp_path, taken):
    """Another core may have taken its path meanwhile."""
    command = core_alone(tmp_path)
    cores = []

    def start():
        with (tmp_path / "log").open("a") as log:
            cores.append(subprocess.Popen(command, stderr=log))
        assert process.wait_until(
            lambda: (tmp_path / "log").read_text().count(" starts")
            == len(cores), 20 * SLOW)

    def end(core):
        core.send_signal(signal.SIGTERM)
        assert core.wait(60 * SLOW) == 0
        return (tmp_path / "socket").exists()

    start()
    if taken:
        start()
    assert [end(core) for core in cores] == [True, False][-len(cores):]


@pytest.mark.parametrize("signo", [signal.SIGTERM, signal.SIGQUIT])
def test_a_core_that_begins_can_be_ended(tmp_path, signo):
    """As soon as its first line is there; several, because it is a matter of
    microseconds."""
    command = core_alone(tmp_path)
    for _ in range(20):
        with subprocess.Popen(command, stderr=subprocess.PIPE) as core:
            text = b""
            while b" starts" not in text:
                text += os.read(core.stderr.fileno(), 65536)
            core.send_signal(signo)
            try:
                assert core.wait(60 * SLOW) == 0
            finally:
                core.kill()


@pytest.mark.parametrize("name", ["nobody-of-this-name", "-1", "4294967295",
                                  "12x", ""])
def test_a_user_that_does_not_exist_is_named(tmp_path, name):
    config = tmp_path / "core.conf"
    config.write_text(f"external_path: '{tmp_path}/core'\n"
                      f"external_users: '{name}'\n")
    done = subprocess.run([CORE, "--config", config], capture_output=True,
                          text=True, timeout=60 * SLOW, check=False)
    assert done.returncode == 1
    assert f'there is no user "{name}"' in done.stderr.replace('\\"', '"')
    assert not (tmp_path / "core").exists()


@pytest.mark.parametrize("arguments", [[], ["--config"], ["--nonsense"],
                                       ["--version", "--check", "x"]])
def test_wrong_arguments_are_answered_with_those_that_there_are(arguments):
    done = subprocess.run([CORE, *arguments], capture_output=True, text=True,
                          timeout=60 * SLOW, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (f"usage: {CORE} --config FILE | --check [FILE]"
                           " | --supervised | --version\n")
