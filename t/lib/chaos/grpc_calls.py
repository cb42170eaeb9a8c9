"""gRPC's unary calls: inferences, sequences and others."""

import asyncio
import struct

import grpc
from tritonclient.grpc import service_pb2 as pb

from lib.chaos.ledger import ENDED, LOST, NO_START
from lib.chaos.requests import (PATIENCE, PLAIN, SUM, Numbers, Protocol,
                                steps)
from lib.grpc_client import SERVICE, infer, tensor

# an idle stream, as its server and as grpcio say
LEFT = ("the worker of this stream is leaving", "Internal error from Core")
# grpcio repeats such a call once
REFUSED = "GOAWAY received"


class Grpc(Protocol):
    """Base of calls and streams."""

    def _channel(self):
        return grpc.aio.insecure_channel(
            f"127.0.0.1:{self.server.port2}",
            [("grpc.use_local_subchannel_pool", 1),
             ("grpc.max_receive_message_length", -1),
             ("grpc.initial_reconnect_backoff_ms", 50),
             ("grpc.max_reconnect_backoff_ms", 200)])

    @staticmethod
    def _method(channel, name):
        """A call of it waits for a connection: without, one that is made while
        there is none fails by an earlier connection's end."""
        method = channel.unary_unary(
            SERVICE + name,
            request_serializer=getattr(
                pb, name + "Request").SerializeToString,
            response_deserializer=getattr(pb, name + "Response").FromString)

        async def call(message):
            return await method(message, timeout=PATIENCE,
                                wait_for_ready=True)
        return call

    def _rpc_failed(self, kind, before, error):
        self._ended(kind, before, error.code(), error.details() or "")

    def _ended(self, kind, before, code, text):
        """The call has, with an error."""
        if code == grpc.StatusCode.DEADLINE_EXCEEDED:
            self.ledger.bad(kind, "no answer")
        elif ENDED in text:
            self.ledger.bad(kind, text)
        elif text in LEFT or REFUSED in text:
            self.ledger.closed(kind, before, text)
        else:
            self.ledger.lost(kind, before, f"{code} {text}")


class Calls(Grpc):
    async def infer(self, rng):
        async with self._channel() as channel:
            call = self._method(channel, "ModelInfer")
            while self.going():
                sent = Numbers(rng)
                before = self.ledger.ask()
                try:
                    got = await call(sent.grpc())
                except grpc.aio.AioRpcError as e:
                    self._rpc_failed("calls", before, e)
                    continue
                if got.raw_output_contents[0] != sent.packed:
                    self.ledger.bad("calls", "another request's answer")
                else:
                    self.ledger.answered("calls")
                await self.think(rng)

    # ---- sequences

    async def sequences(self, rng):
        async with self._channel() as channel:
            call = self._method(channel, "ModelInfer")
            while self.going():
                await self._sequence(rng, call)
                await self.think(rng)

    async def _sequence(self, rng, call):
        began = self.ledger.now()
        for value, total, parameters in steps(rng):
            before = self.ledger.ask()
            try:
                got = await call(infer(SUM, tensor(
                    "IN", "INT32", [1, 1], struct.pack("<i", value)),
                    options=parameters))
            except grpc.aio.AioRpcError as e:
                text = e.details() or ""
                if LOST in text or NO_START in text:
                    self.ledger.sequence_ended(began, before, text)
                else:
                    self._rpc_failed("sequences", before, e)
                return
            if not self.judge_step(struct.unpack(
                    "<i", got.raw_output_contents[0])[0], total):
                return
            await asyncio.sleep(rng.uniform(0, 0.2))

    # ---- control and statistics: each answer names what was asked for

    async def control(self, rng):
        async with self._channel() as channel:
            while self.going():
                model = rng.choice(PLAIN)
                name, message, named = rng.choice([
                    ("ServerMetadata", pb.ServerMetadataRequest(),
                     lambda m: m.name == "triton"),
                    ("ModelMetadata", pb.ModelMetadataRequest(name=model),
                     lambda m, model=model: m.name == model),
                    ("ModelConfig", pb.ModelConfigRequest(name=model),
                     lambda m, model=model: m.config.name == model),
                    ("ModelStatistics", pb.ModelStatisticsRequest(name=model),
                     lambda m, model=model: m.model_stats[0].name == model),
                    ("RepositoryIndex", pb.RepositoryIndexRequest(),
                     lambda m: all(e.name for e in m.models))])
                before = self.ledger.ask()
                try:
                    got = await self._method(channel, name)(message)
                except grpc.aio.AioRpcError as e:
                    text = e.details() or ""
                    if ENDED in text:
                        self.ledger.unavailable(
                            before, e.code() == grpc.StatusCode.UNAVAILABLE,
                            f"{name}: {text}")
                    else:
                        self._rpc_failed("control", before, e)
                    continue
                if named(got):
                    self.ledger.answered("control")
                else:
                    self.ledger.bad("control", f"{name} {model}: {got}")
                await self.think(rng)
