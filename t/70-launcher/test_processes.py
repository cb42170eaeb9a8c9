"""inference-server as a process: its signals, its children, its files."""

import fcntl
import os
import pathlib
import pty
import pwd
import signal
import socket
import subprocess
import termios

import pytest

from lib import models, preload, process, wire
from lib.launcher import in_flight
from lib.server import NGINX, SLOW, nap


@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGINT,
                                  signal.SIGQUIT])
def test_signals_that_stop(launch, name):
    assert launch().stop(name) == 0


@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGHUP])
def test_signals_while_it_starts(begin, tmp_path, repository, name):
    """nginx has its handlers only later: SIGTERM is a graceful stop even
    then, and SIGHUP no end."""
    slow = tmp_path / "nginx"
    slow.write_text("#!/usr/bin/python3\nimport os, sys, time\n"
                    "time.sleep(1)\n"
                    f"os.execv('{NGINX}', ['{NGINX}', *sys.argv[1:]])\n")
    slow.chmod(0o755)
    server = begin(f"--model-repository={repository}",
                   env={"INFERENCE_NGINX": str(slow)})
    assert process.wait_until(
        lambda: process.descendants(server.process.pid), 10 * SLOW)
    server.process.send_signal(name)
    if name == signal.SIGHUP:
        server.wait_ready()
        assert server.ask().status == 200
        assert server.stop() == 0
        return
    assert server.process.wait(30 * SLOW) == 0, server.log.read_text()
    assert list(server.tmp.iterdir()) == []


def test_a_signal_that_comes_again_is_no_haste(launch):
    """Of a hook before the stop of a container and of its end, say; Triton
    takes the first alone."""
    launcher = launch()
    with wire.Wire(launcher.port, 20 * SLOW) as connection:
        in_flight(connection, "slow")
        for name in (signal.SIGTERM, signal.SIGQUIT, signal.SIGTERM):
            launcher.process.send_signal(name)
            nap(0.1)
        assert connection.read().status == 200
    assert launcher.process.wait(30 * SLOW) == 0


@pytest.mark.parametrize("ignored", [False, True])
def test_a_terminal_that_is_closed(launch, ignored):
    """The server ends with it, unless it was started by nohup."""
    master, slave = pty.openpty()

    def control():
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGHUP,
                      signal.SIG_IGN if ignored else signal.SIG_DFL)

    launcher = launch(start_new_session=True, preexec_fn=control)
    os.close(slave)
    launcher.process.send_signal(signal.SIGHUP)             # a reload
    launcher.wait_log("reconfiguring")
    assert launcher.ask().status == 200
    os.close(master)
    if ignored:
        assert not process.wait_until(
            lambda: launcher.process.poll() is not None, 1)
        assert launcher.ask().status == 200
        assert launcher.stop() == 0
    else:
        assert launcher.process.wait(30 * SLOW) == 0
        assert list(launcher.tmp.iterdir()) == []


def test_signals_put_no_end_off(begin, tmp_path, repository):
    deaf = tmp_path / "nginx"
    deaf.write_text("#!/usr/bin/python3\nimport signal, time\n"
                    "signal.signal(signal.SIGQUIT, signal.SIG_IGN)\n"
                    "signal.pthread_sigmask(signal.SIG_SETMASK, [])\n"
                    "time.sleep(600)\n")
    deaf.chmod(0o755)
    server = begin(f"--model-repository={repository}",
                   "--exit-timeout-secs=1", env={"INFERENCE_NGINX": str(deaf)})

    assert process.wait_until(
        lambda: process.descendants(server.process.pid), 10 * SLOW)

    def ended():
        if server.process.poll() is None:
            server.process.send_signal(signal.SIGTERM)
        return server.process.poll() is not None

    assert process.wait_until(ended, 20 * SLOW, 0.5)
    assert server.process.returncode == 128 + signal.SIGTERM
    assert "did not end in time" in server.log.read_text()


def test_ctrl_c_again_ends_it_at_once(launch, repository):
    (repository / "slow/config.pbtxt").write_text(models.identity_config(
        "slow", [("IN", "FP32", [-1])],
        parameters={"execute_delay_ms": "20000"}))
    launcher = launch()
    with wire.Wire(launcher.port, 20 * SLOW) as connection:
        in_flight(connection, "slow")
        launcher.process.send_signal(signal.SIGTERM)
        nap(0.1)
        launcher.process.send_signal(signal.SIGINT)
        assert launcher.process.wait(10 * SLOW) == 1
    assert list(launcher.tmp.iterdir()) == []


def test_workers_end_with_their_master(launch):
    """They would serve on, and hold the ports."""
    launcher = launch()
    pids = launcher.tree()
    master, = [p for p in pids if process.stat(p)[2] == launcher.process.pid]
    os.kill(master, signal.SIGKILL)
    assert launcher.process.wait(10 * SLOW) == 128 + signal.SIGKILL
    assert process.wait_until(
        lambda: not [p for p in pids if process.alive(p)], 30 * SLOW)
    assert list(launcher.tmp.iterdir()) == []


@pytest.mark.parametrize("closed", [(2,), (0, 1, 2)])
def test_closed_standard_streams(launch, closed):
    """nginx.conf or a socket would be what the log is written to."""
    launcher = launch("--metrics-config=unknown=true",
                      preexec_fn=lambda: [os.close(fd) for fd in closed])
    assert launcher.ask().status == 200
    for pid in launcher.tree():
        assert os.readlink(f"/proc/{pid}/fd/2") == "/dev/null" \
            or process.stat(pid)[0] == "inference-core"
    assert launcher.stop() == 0


@pytest.mark.parametrize("name", ["missing", "file"])
def test_a_directory_for_temporary_files_that_is_none(
        begin, tmp_path, repository, name):
    (tmp_path / "file").touch()
    server = begin(f"--model-repository={repository}",
                   env={"TMPDIR": str(tmp_path / name)})
    assert server.process.wait(30 * SLOW) == 1
    log = server.log.read_text()
    assert f"cannot make a directory {tmp_path}/{name}/inf" in log
    assert "TMPDIR" in log


def test_what_cannot_start_leaves_nothing(begin, repository):
    """nginx does not read a word of 5000 bytes: each quote is two."""
    server = begin(f"--model-repository={repository}",
                   "--backend-config=x,a=" + '"' * 2500)
    assert server.process.wait(30 * SLOW) == 1
    assert "too long" in server.log.read_text()
    assert list(server.tmp.iterdir()) == []


@pytest.mark.parametrize("user", ["root", "games"])
def test_what_a_killed_launcher_left_is_removed(launch, owned, user):
    """Not before its nginx has ended, too."""
    owned(pwd.getpwnam(user).pw_uid)
    killed = launch()
    left = set(killed.tmp.iterdir())
    pids = process.descendants(killed.process.pid)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    killed.process.kill()
    killed.process.wait()
    first = launch()
    assert left < set(first.tmp.iterdir())
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    assert process.wait_until(
        lambda: not [p for p in pids if process.alive(p)], 20 * SLOW)
    second = launch()
    assert len(set(first.tmp.iterdir()) - left) == 4
    assert not left & set(first.tmp.iterdir())
    for launcher in (first, second):
        assert launcher.ask().status == 200
        launcher.process.terminate()
        assert launcher.process.wait(30 * SLOW) == 0
    assert list(first.tmp.iterdir()) == []


def test_a_link_in_place_of_what_a_killed_launcher_left(
        begin, tmp_path, repository):
    """It is not followed: what is behind it stays."""
    tmp, kept = tmp_path / "tmp", tmp_path / "kept" / "proxy" / "file"
    kept.parent.mkdir(parents=True)
    kept.touch()
    left = tmp / "inference-server-abcdef"
    left.mkdir(parents=True)
    temp = tmp / "inference-server-temp-abcdef"
    temp.symlink_to(kept.parents[1])
    (left / "temp").symlink_to(temp)
    server = begin(f"--model-repository={repository}",
                   env={"TMPDIR": str(tmp)})
    assert process.wait_until(
        lambda: server.status("/v2/health/ready") == 200, 30 * SLOW)
    assert not left.exists()
    assert kept.exists()
    server.process.terminate()
    assert server.process.wait(30 * SLOW) == 0


def test_the_first_process_of_a_container_takes_orphans(launch):
    launcher = launch(preexec_fn=process.become_subreaper)
    core, = [p for p in launcher.tree()
             if process.stat(p)[0] == "inference-core"]
    keeper = process.stat(core)[2]
    os.kill(keeper, signal.SIGKILL)
    os.kill(core, signal.SIGKILL)

    def zombies():
        return [p for p in map(int, filter(str.isdigit, os.listdir("/proc")))
                if (s := process.stat(p)) and s[1] == "Z"
                and s[2] == launcher.process.pid]

    assert process.wait_until(lambda: process.stat(core) is None, 10 * SLOW)
    assert zombies() == []
    assert process.wait_until(lambda: launcher.ask().status == 200, 30 * SLOW)
    launcher.process.send_signal(signal.SIGTERM)
    assert launcher.process.wait(30 * SLOW) == 0


def test_a_log_that_nobody_reads_is_no_reason_to_end(begin, repository):
    server = begin(f"--model-repository={repository}",
                   stderr=subprocess.PIPE)
    server.process.stderr.close()
    assert process.wait_until(
        lambda: server.status("/v2/health/ready") == 200, 30 * SLOW)
    assert not process.wait_until(
        lambda: server.process.poll() is not None, 1)
    assert server.ask().status == 200
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(30 * SLOW) == 0


@pytest.mark.parametrize("name", ["a b", "a;}b", "a\"'b", "a\\b", "$a#b{",
                                  "\u00e4\nb"])
def test_any_directory_for_temporary_files(begin, tmp_path, repository, name):
    folder = tmp_path / name
    folder.mkdir()
    server = begin(f"--model-repository={repository}",
                   env={"TMPDIR": str(folder)})
    server.wait_log("Started Metrics Service")
    assert server.ask().status == 200
    assert len(list(folder.iterdir())) == 2
    server.stop()
    assert list(folder.iterdir()) == []


def test_a_relative_directory_for_temporary_files(begin, tmp_path, repository):
    server = begin(f"--model-repository={repository}",
                   cwd=tmp_path, env={"TMPDIR": "tmp"})
    server.wait_log("Started Metrics Service")
    server.stop()
    assert not pathlib.Path("tmp").exists()


@pytest.mark.parametrize("options", [["--grpc-address=[::]"], []])
def test_all_addresses_of_both_families(begin, repository, options):
    """gRPC's own default is all of both, as Triton's."""
    try:
        with socket.socket(socket.AF_INET6) as s:
            s.bind(("::1", 0))
    except OSError:
        pytest.skip("no IPv6 here")
    server = begin(f"--model-repository={repository}",
                   *options, "--metrics-address=::")
    server.wait_ready()
    for host in ("127.0.0.1", "::1"):
        for port in (server.grpc_port, server.metrics_port):
            socket.create_connection((host, port), 10 * SLOW).close()
    assert wire.fetch(server.metrics_port, "GET", "/metrics").status == 200
    server.stop()


def test_a_kernel_without_ipv6(begin, repository):
    server = begin(f"--model-repository={repository}",
                   env={"LD_PRELOAD": str(preload.library("no_ipv6"))})
    server.wait_ready()
    assert "listen [::]" not in server.conf()
    socket.create_connection(("127.0.0.1", server.grpc_port), 10).close()
    assert server.stop() == 0
