"""conf.d/README.md: which snippets have a server of their own, and that two of
them do not get on one port unseen."""

import re

import pytest

from lib import snippets
from lib.server import ROOT, free_port

PAGE = (ROOT / "conf.d/README.md").read_text()
FILES = {p.stem: p.read_text() for p in (ROOT / "conf.d").glob("*.conf")}
LISTEN = re.compile(r"^    listen +(\d+)\b(.*);", re.M)
PORTS = {name: [port for port, _ in LISTEN.findall(text)]
         for name, text in FILES.items() if LISTEN.search(text)}


def test_each_server_is_the_default_of_its_port():
    assert len(PORTS) > 8
    for name, text in FILES.items():
        for port, options in LISTEN.findall(text):
            assert options.split()[:1] == ["default_server"], (name, port)


def test_the_table_has_all_of_them():
    rows = re.findall(r"^\| (`[^|]*) \| ([0-9, ]+) \|", PAGE, re.M)
    found = {name: ports.split(", ") for names, ports in rows
             for name in re.findall(r"`([a-z-]+)\.conf`", names)}
    assert found == PORTS
    for name in FILES:
        assert f"`{name}.conf`" in PAGE


@pytest.mark.parametrize("other", sorted(
    name for name, ports in PORTS.items()
    if "8000" in ports and name != "triton"))
def test_nginx_rejects_a_second_server(make_server, tmp_path, other):
    keys = tmp_path / "keys"
    keys.write_text("")
    ports = {8000: free_port()}
    text = snippets.read("triton", ports) + snippets.read(
        other, ports, **({"api-keys_map": keys} if other == "quotas" else {}))
    server = make_server(start=False, http=text)
    status, output = server.check_config()
    assert status != 0
    assert f"a duplicate default server for 127.0.0.1:{ports[8000]}" in output
