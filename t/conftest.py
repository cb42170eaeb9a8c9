"""Fixtures of every black-box test, and the list of expected skips."""

import collections
import os
import pathlib
import shutil

import pytest

from lib import gpu, models, prebuilt, process, seeds
from lib.collector import Collector
from lib.server import BUILD, SANITIZER, Server, has_http3
from lib.upstream import Upstream

HERE = pathlib.Path(__file__).resolve().parent
ORT_GPU = BUILD / "t-ort/onnxruntime/libonnxruntime.so.1"


def pytest_configure(config):
    process.become_subreaper()


@pytest.fixture(scope="session", autouse=True)
def passable_base(tmp_path_factory):
    """Servers of other users may pass through to what a test opens."""
    base = tmp_path_factory.getbasetemp()
    base.chmod(0o755)
    for parent in base.parents:
        if not parent.name.startswith("pytest-"):
            break
        parent.chmod(0o755)


@pytest.fixture(scope="module")
def server():
    """One server with models.standard_repository, for a whole file."""
    with Server(models.standard_repository, workers=2,
                http="    inference_max_body 256m;") as s:
        yield s


@pytest.fixture
def make_server():
    """A function that starts servers which end with the test."""
    made = []

    def make(*arguments, start=True, wait="ready", **kw):
        s = Server(*arguments, **kw)
        made.append(s)
        return s.start(wait) if start else s

    yield make
    failures = []
    for s in made:
        if s.process is None:
            shutil.rmtree(s.prefix, ignore_errors=True)
            continue
        try:
            s.stop()
        except AssertionError as e:
            failures.append(str(e))
    assert not failures, "\n\n".join(failures)


@pytest.fixture
def collector():
    c = Collector()
    yield c
    c.close()


@pytest.fixture
def upstream():
    with Upstream() as u:
        yield u


@pytest.fixture(autouse=True)
def quiet_log():
    """The test that makes a server complain is the test that fails."""
    yield
    for s in Server.running:
        s.check_log()


# ---- tests of GPUs: those that the driver at hand can run

LEFT_OUT = collections.Counter()        # why: how many


def pytest_collection_modifyitems(config, items):
    why = {item: gpu.why_not(item) for item in items}
    out = [item for item in items if why[item]]
    LEFT_OUT.update(why[item] for item in out)
    config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if not why[item]]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Each of several processes has left out the same (pytest -n)."""
    if not LEFT_OUT:
        LEFT_OUT.update(getattr(node, "workeroutput", {}).get("left out", {}))


# ---- skipped tests: only those in expected-skips.txt, and those must be

def _expected_skips():
    expected = {}
    for line in (HERE / "expected-skips.txt").read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            build, test, reason = (p.strip() for p in line.split("|"))
            if build in ("any", SANITIZER or "plain") \
                    or build == "no-prebuilt" and prebuilt.missing() \
                    or build == "no-http3" and not has_http3() \
                    or build == "other-nginx" and "INF_NGINX" in os.environ \
                    or build == "no-ort-gpu" and not ORT_GPU.exists() \
                    or build == "no-documents" and not seeds.snippets():
                expected[test] = reason
    return expected


def _match(tests, expected):
    """Those of tests that the list names; a name may end with *."""
    folders = tuple(e[:-1] for e in expected if e.endswith("*"))
    return {t for t in tests
            if t in expected or folders and t.startswith(folders)}


class Skips:
    def __init__(self):
        self.skipped, self.run = set(), set()

    def note(self, report):
        name = report.nodeid.removeprefix("t/")
        if report.skipped:
            self.skipped.add(name)
        elif report.when == "call":
            self.run.add(name)


SKIPS = Skips()


def pytest_runtest_logreport(report):
    SKIPS.note(report)


def pytest_terminal_summary(terminalreporter):
    for why, count in sorted(LEFT_OUT.items()):
        terminalreporter.write_line(f"left out: {count} tests {why}")
    expected = _expected_skips()
    for test in sorted(SKIPS.skipped - _match(SKIPS.skipped, expected)):
        terminalreporter.write_line(f"skipped but not expected: {test}")
    for test in sorted(_match(SKIPS.run, expected)):
        terminalreporter.write_line(f"expected to be skipped, but ran: {test}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left out"] = dict(LEFT_OUT)
        return
    expected = _expected_skips()
    wrong = (SKIPS.skipped - _match(SKIPS.skipped, expected)) \
        | _match(SKIPS.run, expected)
    if wrong and exitstatus == 0:
        session.exitstatus = 1
