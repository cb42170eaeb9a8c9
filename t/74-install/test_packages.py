"""The Debian packages of module and core, unpacked: make test-deb installs
them, in roots of their own."""

import pathlib
import re
import subprocess

import pytest

from lib import models
from lib.server import BUILD, ROOT

NAMES = ["libnginx-mod-http-inference", "nginx-inference-core"]


def field(package, name):
    return subprocess.run(["dpkg-deb", "-f", package, name], check=True,
                          capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="module")
def packages():
    """{name: its file}"""
    subprocess.run(["sh", "tools/deb.sh", BUILD, *NAMES], cwd=ROOT, check=True,
                   capture_output=True, timeout=1200)
    return {field(file, "Package"): file
            for file in (BUILD / "deb").glob("*.deb")}


@pytest.fixture(scope="module")
def unpacked(packages, tmp_path_factory):
    """A directory with the files of both, and their scripts."""
    folder = tmp_path_factory.mktemp("packages")
    folder.chmod(0o755)
    for name in NAMES:
        subprocess.run(["dpkg-deb", "-x", packages[name], folder / "root"],
                       check=True)
        subprocess.run(["dpkg-deb", "-e", packages[name], folder / name],
                       check=True)
    (folder / "root").chmod(0o755)
    return folder


def test_only_what_was_asked_for(packages):
    assert {n for n in packages if not n.endswith("-dbgsym")} == set(NAMES)


def test_the_module_is_for_this_nginx(packages):
    file = packages[NAMES[0]]
    abi = re.search(r"^nginx:abi=(\S+)", pathlib.Path(
        "/usr/share/nginx/src/debian/libnginx-mod.abisubstvars").read_text(),
        re.M)[1]
    depends = field(file, "Depends").split(", ")
    assert abi in depends
    assert f"nginx-inference-core (= {field(file, 'Version')})" in depends


def test_the_core_needs_no_nginx(packages):
    assert "nginx-abi" not in field(packages[NAMES[1]], "Depends")


@pytest.mark.parametrize("file", [
    "etc/logrotate.d/nginx-inference-core",
    "usr/bin/inference-server",
    "usr/lib/nginx-inference/backends/python/libtriton_python.so",
    "usr/lib/systemd/system/inference-core.service",
    "usr/lib/systemd/system/nginx.service.d/inference.conf",
    "usr/lib/sysusers.d/nginx-inference-core.conf",
    "usr/share/doc/libnginx-mod-http-inference/copyright",
    "usr/share/doc/nginx-inference-core/docs/install.md",
    "usr/share/doc/nginx-inference-core/copyright",
    "usr/share/nginx-inference/conf.d/triton.conf",
    "usr/share/nginx-inference/examples/models/identity/config.pbtxt",
    "usr/share/nginx/modules-available/mod-http-inference.conf"])
def test_it_is_there(unpacked, file):
    assert (unpacked / "root" / file).is_file()


def test_the_core_s_package_has_no_large_runtime(unpacked):
    backends = unpacked / "root/usr/lib/nginx-inference/backends"
    assert {path.name for path in backends.iterdir()} == {
        "cuda", "identity", "image", "label", "python"}


def test_scripts_link_the_module_and_make_the_user(unpacked):
    text = (unpacked / NAMES[0] / "postinst").read_text()
    assert "mod-http-inference.conf:50-mod-http-inference.conf" in text
    assert "nginx-reload" in text
    assert "modules-enabled" in (unpacked / NAMES[0] / "postrm").read_text()
    assert "systemd-sysusers" in (unpacked / NAMES[1] / "postinst").read_text()


def test_a_stop_takes_as_long_as_executions(unpacked):
    text = (unpacked / "root/usr/lib/systemd/system/nginx.service.d"
            / "inference.conf").read_text()
    values = dict(re.findall(r"^(\w+)=(.*)$", text, re.M))
    assert values["OOMPolicy"] == "continue"
    assert values["ExecStop"] == ""
    assert values["KillSignal"] == "SIGQUIT"
    # inference_core drain=30s by default
    assert int(values["TimeoutStopSec"]) > 30


def test_the_logs_are_rotated(unpacked):
    text = (unpacked / "root/etc/logrotate.d/nginx-inference-core").read_text()
    assert "/var/log/nginx-inference/*.log {" in text
    closed = (ROOT / "examples/closed/nginx.conf").read_text()
    assert "/var/log/nginx-inference/error.log" in closed
    for pid in ("/run/nginx.pid", "/run/nginx-inference/nginx.pid"):
        assert pid in text
    assert "/run/nginx-inference/nginx.pid" in closed


def test_the_unpacked_files_answer(unpacked, make_server):
    """The packages' module finds the packages' core and backends."""
    place = unpacked / "root/usr/lib/nginx-inference"
    server = make_server(models.standard_repository, start=False,
                         core=place / "inference-core",
                         backends=place / "backends")
    server.write_config(module=place / "ngx_http_inference_module.so")
    server.start("ready")
    assert server.get("/v2/health/ready").status == 200
    server.wait_log(re.escape(str(place / "backends/identity")))
