"""Asks again and again whether a server and its models are ready."""

import contextlib
import threading

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tritonclient.grpc import service_pb2 as pb

from lib import process
from lib.grpc_client import Client
from lib.repository import index
from lib.server import SLOW, nap

Health = health_pb2.HealthCheckResponse


class Prober:
    """Each question has a thread of its own; wrong answers are kept."""

    def __init__(self, server, names):
        self.server = server
        self.names = names
        self.wrong = []
        self.ends = threading.Event()
        questions = {"server": self._server, "index": self._index,
                     "grpc": self._grpc, "check": self._check,
                     "watch": self._watch}
        questions.update(
            {name: lambda name=name: self._model(name) for name in names})
        self.threads = [
            threading.Thread(target=self._ask, args=question, daemon=True)
            for question in questions.items()]
        self.asked = dict.fromkeys(questions, 0)

    def __enter__(self):
        self.grpc = Client(self.server.port2)
        self.health = health_pb2_grpc.HealthStub(self.grpc.channel)
        for thread in self.threads:
            thread.start()
        self.more()
        return self

    def __exit__(self, *_):
        self.ends.set()
        for thread in self.threads:
            thread.join(60 * SLOW)
        self.grpc.close()

    def more(self, count=5):
        """Waits until each question has been answered so often from now."""
        before = dict(self.asked)
        assert process.wait_until(
            lambda: self.wrong or all(
                self.asked[question] >= before[question] + count
                for question in before if question != "watch"),
            60 * SLOW), (before, self.asked)
        assert not self.wrong, self.wrong

    def _ask(self, question, ask):
        while not self.ends.is_set():
            try:
                answer = ask()
            except (OSError, EOFError, grpc.RpcError) as e:
                answer = repr(e)
            if answer is not None:
                self.wrong.append((question, answer))
            self.asked[question] += 1
            nap(0.003)

    def _server(self):
        answer = self.server.get("/v2/health/ready")
        return None if answer.status == 200 else answer

    def _model(self, name):
        answer = self.server.get(f"/v2/models/{name}/ready")
        return None if answer.status == 200 else answer

    def _index(self):
        for filter_ in ({}, {"ready": True}):
            rows = index(self.server, **filter_)
            serving = {r["name"] for r in rows if r.get("state") == "READY"}
            if not serving >= set(self.names):
                return rows
        return None

    def _grpc(self):
        ready = self.grpc.call("ServerReady").ready
        for name in self.names:
            ready = ready and self.grpc.call(
                "ModelReady", pb.ModelReadyRequest(name=name)).ready
        return None if ready else "gRPC"

    def _check(self):
        status = self.health.Check(health_pb2.HealthCheckRequest(),
                                   timeout=60 * SLOW).status
        return None if status == Health.SERVING else status

    def _watch(self):
        """Statuses until its worker, or the test, ends the call."""
        call = self.health.Watch(health_pb2.HealthCheckRequest())
        threading.Thread(target=self._cancel, args=(call,),
                         daemon=True).start()
        with contextlib.suppress(grpc.RpcError):
            for answer in call:
                if answer.status != Health.SERVING:
                    return answer.status
        return None

    def _cancel(self, call):
        self.ends.wait()
        call.cancel()
