"""Servers that trace, and both of Triton's clients."""

import pytest
import tritonclient.grpc
import tritonclient.http

from lib import models

PARTS = ("health metadata config infer generate statistics repository trace"
         " logging metrics")


def fill(repository):
    models.identity(repository, "one", [("IN", "INT32", [-1])])
    models.identity(repository, "two", [("IN", "INT32", [-1])])


class Rest:
    """Settings over REST, as dictionaries."""

    def __init__(self, server):
        self.client = tritonclient.http.InferenceServerClient(server.url)

    def trace(self, model=None, **settings):
        if settings:
            return self.client.update_trace_settings(model, settings)
        return self.client.get_trace_settings(model)

    def log(self, **settings):
        if settings:
            return self.client.update_log_settings(settings)
        return self.client.get_log_settings()


class Grpc:
    """The same over gRPC."""

    def __init__(self, server):
        self.client = tritonclient.grpc.InferenceServerClient(
            f"127.0.0.1:{server.port2}")

    def trace(self, model=None, **settings):
        answer = self.client.update_trace_settings(model, settings) \
            if settings else self.client.get_trace_settings(model)
        return {k: list(v.value) if k == "trace_level" else v.value[0]
                for k, v in answer.settings.items()}

    def log(self, **settings):
        answer = self.client.update_log_settings(settings) \
            if settings else self.client.get_log_settings()
        return {k: getattr(v, v.WhichOneof("parameter_choice"))
                for k, v in answer.settings.items()}


@pytest.fixture
def start(make_server):
    def make(fill_=fill, **kw):
        return make_server(fill_, http2=True, **{"parts": PARTS, **kw})
    return make


@pytest.fixture
def server(start):
    return start()


@pytest.fixture(params=[Rest, Grpc], ids=["rest", "grpc"])
def client(request, server):
    c = request.param(server)
    yield c
    c.client.close()
