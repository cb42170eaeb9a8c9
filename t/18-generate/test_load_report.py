"""endpoint-load-metrics: how full the KV cache is."""

import json

import pytest

from lib import backends, events, models
from lib.wire import tensor

ASK = "endpoint-load-metrics-format"
REPORT = "endpoint-load-metrics"
VERBS = ["generate", "generate_stream"]


def server_of(start, **gauges):
    def fill(repository):
        models.identity(repository, "llm", [("IN", "INT32", [1])],
                        backend="kv_cache", parameters=gauges)
        models.identity(repository, "other", [("IN", "INT32", [1])])
    folder = backends.build("kv_cache")
    return start(fill, http=f"    inference_backends {folder};")


def ask(server, form, verb="generate", model="llm", body=None):
    answer = events.post(server.port, events.path(model, verb),
                         body or {"IN": 1}, headers={ASK: form})
    return answer.headers.get(REPORT)


def test_formats(start):
    server = server_of(start, used="64", max="128", tokens_per="64")
    for verb in VERBS:
        # the gauge is the server's: any model's client may ask
        for model in ("llm", "other"):
            text = ask(server, "json", verb, model)
            assert text == 'JSON {"named_metrics":{"kv_cache_utilization":' \
                '0.5,"max_token_capacity":8192}}'
            json.loads(text[5:])
            assert ask(server, "text", verb, model) == \
                "TEXT named_metrics.kv_cache_utilization=0.500000, " \
                "named_metrics.max_token_capacity=8192"


def test_nobody_asks(start):
    server = server_of(start, used="64", max="128", tokens_per="64")
    for form in ("", "JSON", "xml", "json ,text"):
        assert ask(server, form) is None, form
    for verb in VERBS:
        answer = events.post(server.port, events.path("llm", verb), {"IN": 1})
        assert REPORT not in answer.headers
    # errors have no report, nor has infer
    assert ask(server, "json", body={"IN": "x"}) is None
    with server.wire() as connection:
        answer = connection.infer("llm", {"inputs": [
            tensor("IN", "INT32", [1], [1])]}, headers={ASK: "json"})
    assert answer.status == 200 and REPORT not in answer.headers


@pytest.mark.parametrize("gauges,report", [
    ({}, None), ({"used": "1", "max": "2"}, None),
    ({"used": "-1", "max": "2", "tokens_per": "4"}, None),
    ({"used": "nan", "max": "2", "tokens_per": "4"}, None),
    ({"used": "1", "max": "inf", "tokens_per": "4"}, None),
    ({"used": "0", "max": "0", "tokens_per": "0"}, (0, 0)),
    ({"used": "3", "max": "4", "tokens_per": "2.5"}, (0.75, 10))])
def test_gauges(start, gauges, report):
    server = server_of(start, **gauges)
    text = ask(server, "json")
    if report is None:
        assert text is None
        return
    got = json.loads(text[5:])["named_metrics"]
    assert got == {"kv_cache_utilization": report[0],
                   "max_token_capacity": report[1]}
