"""Reloads with a changed value, directive by directive: the log
names what waits for the next core and what counts for loads, and nothing else,
as docs/directives.md says under "Reload"."""

import re

import pytest

from lib import models, process
from lib.server import CORE, ROOT, SLOW, Server

TABLE = {name: " ".join(effect.split()) for name, effect in re.findall(
    r"^### (inference\w*)\n\n```\n(?:.+\n)*?Reload: +(.*\n(?: .*\n)*)",
    (ROOT / "docs/directives.md").read_text(), re.M)}
CORE_WAITS = re.compile(r"changed settings wait for the next core, which"
                        r' "kill -QUIT \d+" starts: (.*)')
LOADS = re.compile(r"models loaded from now on use the changed (.*); loaded")
NEXT, LATER, NOW, WORKERS = "next core", "loads", "at once", "new workers"

# (directive, its values, where it stands, what the log says)
HTTP, LOCATION, OPTION = range(3)
ROWS = [
    ("inference_core", "spin=3us", OPTION, NEXT),
    ("inference_core", "drain=29s", OPTION, NOW),
    ("inference_core", "hang=9s", OPTION, NOW),
    ("inference_core", "dump=on", OPTION, NOW),
    ("inference_server_id", "another", HTTP, NEXT),
    ("inference_repository", "/nowhere", HTTP, NOW),
    ("inference_backends", "/nowhere", HTTP, LATER),
    ("inference_agents", "/nowhere", HTTP, LATER),
    ("inference_backend_config", "identity a=b", HTTP, LATER),
    ("inference_backend_config", "* min-compute-capability=7.5", HTTP,
     NEXT + LATER),
    ("inference_response_cache", "local size=1m", HTTP, NEXT),
    ("inference_cache_directory", "/nowhere", HTTP, NEXT),
    ("inference_model_control", "poll interval=1h", HTTP, NOW),
    ("inference_load_model", "id_int32; inference_model_control explicit",
     HTTP, NOW),
    ("inference_code_upload", "on", HTTP, LATER),
    ("inference_max_json_size", "1m", HTTP, NOW),
    ("inference_model_namespacing", "on", HTTP, NEXT),
    ("inference_model_config_name", "wide", HTTP, NEXT),
    ("inference_model_load", "threads=2", HTTP, NEXT),
    ("inference_model_load", "retries=1", HTTP, LATER),
    ("inference_peer_access", "off", HTTP, NEXT),
    ("inference_memory", "512m", HTTP, WORKERS),
    ("inference_memory", "1g pinned=3m", HTTP, NEXT),
    ("inference_memory", "1g cuda=0:1m", HTTP, NEXT),
    ("inference_shared_memory", "regions=1m", HTTP, NOW),
    ("inference_log", "info verbose=1", HTTP, NOW),
    ("inference_trace", "file=/nowhere/trace", HTTP, NEXT),
    ("inference_check", "off", HTTP, WORKERS),
    ("inference_auto_complete", "off", HTTP, LATER),
    ("inference_strict_readiness", "off", HTTP, NOW),
    ("inference_host_policy", "p cpu-cores=0", HTTP, LATER),
    ("inference_metrics", "histograms=on", HTTP, NEXT),
    ("inference_response_wait", "2s", HTTP, NEXT),
    ("inference_stuck", "61s", HTTP, NOW),
    ("inference_rate_limit", "execution_count", HTTP, NEXT),
    ("inference_rate_limit_resource", "R 3", HTTP, NEXT),
    ("inference", "health", LOCATION, WORKERS),
    ("inference_model", "id_int32", LOCATION, WORKERS),
    ("inference_timeout", "1s", HTTP, WORKERS),
    ("inference_tries", "2", HTTP, WORKERS),
    ("inference_errors", "precise", HTTP, WORKERS),
    ("inference_grpc_compression", "low", HTTP, WORKERS),
    ("inference_deflate", "on", HTTP, WORKERS),
    ("inference_binary_type", "a/b", HTTP, WORKERS),
    ("inference_forward_header", "x", HTTP, WORKERS),
    ("inference_max_body", "1m", HTTP, WORKERS),
    ("inference_min_body_rate", "2k", HTTP, WORKERS),
    ("inference_intercept_errors", "on", HTTP, WORKERS),
    ("inference_peek", "on", HTTP, WORKERS),
]
ELSEWHERE = {"inference_env",           # t/60-crash/test_replacement.py
             "inference_balance", "inference_upstream"}     # t/78-balance


def test_every_row_is_here():
    assert {row[0] for row in ROWS} | ELSEWHERE == set(TABLE)


@pytest.fixture(scope="module")
def server():
    with Server(models.standard_repository,
                allow_alarms=["exited on signal"]) as s:
        yield s


def reload(server, where=HTTP, directive="", value="", later=False):
    """Returns what the log says until the core has taken it over; later: and
    goes by it when it loads models."""
    before = server.log_text()
    generations = "inference: configuration "
    server.write_config(
        core_options=f" {value}" if where == OPTION else "",
        http=f"    {directive} {value};\n"
        if where == HTTP and directive else "",
        server=f"        location /here {{ {directive} {value}; }}\n"
        if where == LOCATION else "")
    server.signal("HUP")

    def said():
        text = server.log_text()[len(before):]
        if " is watched" not in text or (later and not LOADS.search(text)):
            return None
        told = re.findall(generations + r"(\d+)\n", text)
        return text if all(f"configuration generation {n} is in force" in text
                           for n in told) else None

    text = process.wait_until(said, 30 * SLOW)
    assert text, server.log_text()[len(before):]
    return text


@pytest.mark.parametrize("directive,value,where,said", ROWS,
                         ids=[" ".join(row[:2]) for row in ROWS])
def test_the_log_names_what_waits(server, directive, value, where, said):
    core = server.core()
    text = reload(server, where, directive, value, LATER in said)
    if LATER in said:
        reload(server, later=True)      # the way back counts for loads, too
    waits = CORE_WAITS.findall(text)
    loads = LOADS.findall(text)
    assert len(waits) == (NEXT in said), text
    assert len(loads) == (LATER in said), text
    assert all(re.match(rf"{directive}\b", x) for x in waits + loads), text
    assert said == WORKERS or "is in force" in text, text
    assert server.core() == core
    for words in (NEXT, LATER, WORKERS):
        assert words not in said or words in TABLE[directive] \
            or directive == "inference_check"


def test_another_program(server, tmp_path):
    program = tmp_path / CORE.name
    program.symlink_to(CORE)
    core = server.core()
    server.write_config(core=program, core_options="", http="", server="")
    server.signal("HUP")
    server.wait_log(r"the core program has changed from .*, which waits for"
                    rf' the next core: "kill -QUIT {core}" starts it')
    assert server.core() == core
