"""gRPC's streams: plain and decoupled models on one call."""

import asyncio
import collections
import struct

import grpc
from tritonclient.grpc import service_pb2 as pb

from lib.chaos.grpc_calls import Grpc
from lib.chaos.requests import (CHAIN, FAST, PATIENCE, SLOWER, Numbers,
                                repeated)
from lib.grpc_client import SERVICE


class Streams(Grpc):
    async def run(self, rng):
        async with self._channel() as channel:
            while self.going():
                await self._one_stream(channel, rng)
                await self.think(rng)

    async def _one_stream(self, channel, rng):
        stream = channel.stream_stream(
            SERVICE + "ModelStreamInfer",
            request_serializer=pb.ModelInferRequest.SerializeToString,
            response_deserializer=pb.ModelStreamInferResponse.FromString)(
                timeout=PATIENCE, wait_for_ready=True)
        before = self.ledger.ask()
        plain, many, answers = {}, {}, []
        try:
            for i in range(rng.randint(1, 12)):
                if rng.random() < 0.3:
                    many[f"r{i}"] = [rng.randrange(2**31)
                                     for _ in range(rng.randint(1, 20))]
                    await stream.write(repeated(many[f"r{i}"], id=f"r{i}"))
                else:
                    sent = Numbers(rng, (FAST, SLOWER, CHAIN))
                    plain[str(i)] = sent
                    await stream.write(sent.grpc(id=str(i)))
                if i == 0:
                    # until then grpcio repeats a stream that a leaving worker
                    # rejects, and may leave out what is written meanwhile
                    answers.append(await stream.read())
            await stream.done_writing()
            while answers[-1] is not grpc.aio.EOF:
                answers.append(await stream.read())
            answers.pop()
            if (code := await stream.code()) != grpc.StatusCode.OK:
                raise AssertionError(f"{code} {await stream.details()}")
        except grpc.aio.AioRpcError as e:
            self._rpc_failed("stream", before, e)
            return
        except (asyncio.InvalidStateError, grpc.aio.UsageError):
            # written after the call's end
            self._ended("stream", before, await stream.code(),
                        await stream.details() or "")
            return
        self._judge_stream(answers, plain, many, before)

    def _judge_stream(self, answers, plain, many, before):
        order, got, errors = [], collections.defaultdict(list), {}
        for a in answers:
            name = a.infer_response.id
            if a.error_message:
                errors[name] = a.error_message
            elif a.infer_response.raw_output_contents:
                got[name].append(a.infer_response)
            if name in plain:
                order.append(name)
        if order != list(plain):
            self.ledger.bad("stream", f"the order is {order}")
        for name, sent in plain.items():
            if name in errors:
                self.ledger.bad("stream", errors[name])
            elif len(got[name]) != 1 \
                    or got[name][0].raw_output_contents[0] != sent.packed:
                self.ledger.bad("stream", f"{name}: {len(got[name])}"
                                " answers, or another request's; errors:"
                                f" {errors}")
            else:
                self.ledger.answered("stream")
        for name, values in many.items():
            have = [self._out(r) for r in got[name]]
            if have != values[:len(have)]:
                self.ledger.bad("stream", f"{name}: another's responses")
            elif name in errors:
                self.ledger.cut("stream", before, errors[name])
            elif len(have) != len(values):
                self.ledger.bad("stream", f"{name}: {len(have)} of"
                                f" {len(values)} responses")
            else:
                self.ledger.answered("stream")

    @staticmethod
    def _out(response):
        for output, raw in zip(response.outputs,
                               response.raw_output_contents):
            if output.name == "OUT":
                return struct.unpack("<i", raw)[0]
        return None
