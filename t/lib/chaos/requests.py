"""Tensors, models and sequences that clients ask for, and their base class."""

import asyncio
import json
import struct

from lib.grpc_client import infer, tensor
from lib.server import SLOW

PATIENCE = 120 * SLOW       # then an answer is missing
FAST, SLOWER, BATCHED, CHAIN, REPEAT, SUM = \
    "fast", "slower", "batched", "chain", "repeat", "sum"
PLAIN = (FAST, FAST, SLOWER, BATCHED, CHAIN)
SMALL = (1, 16, 200)
SIZES = 3 * SMALL + (20_000,)       # most of a client's time is the large one


class Protocol:
    """Clients of one protocol.  going(): they are to go on."""

    def __init__(self, server, ledger, seed, going):
        self.server = server
        self.ledger = ledger
        self.seed = seed
        self.going = going

    @staticmethod
    async def think(rng):
        await asyncio.sleep(rng.uniform(0.2, 1.2))

    def judge_step(self, got, total):
        """Of a sequence: each answer is the sum so far."""
        if got == total:
            self.ledger.answered("sequences")
            return True
        self.ledger.bad("sequences", f"{got} instead of {total}")
        return False


def steps(rng):
    """[(value, sum, parameters)] of a new sequence."""
    name, total, made = rng.randrange(1, 2**31), 0, []
    count = rng.randint(1, 8)
    for i in range(count):
        value = rng.randrange(1, 2**20)
        total += value
        made.append((value, total, {
            "sequence_id": name, "sequence_start": i == 0,
            "sequence_end": i == count - 1}))
    return made


class Numbers:
    """The tensor of a request, which its answer must have, too."""

    def __init__(self, rng, models=PLAIN, sizes=SIZES):
        self.model = rng.choice(models)
        count = rng.choice(sizes)
        self.values = list(struct.unpack(f"<{count}i",
                                         rng.randbytes(4 * count)))
        self.batched = self.model == BATCHED
        if self.batched:
            self.values = self.values[:4] + [0] * (4 - len(self.values))
        self.packed = struct.pack(f"<{len(self.values)}i", *self.values)
        self.shape = [1, 4] if self.batched else [len(self.values)]

    def rest(self, binary):
        """(head, whole body)"""
        entry = {"name": "IN", "datatype": "INT32", "shape": self.shape}
        if not binary:
            entry["data"] = self.values
            return {}, json.dumps({"inputs": [entry]}).encode()
        entry["parameters"] = {"binary_data_size": len(self.packed)}
        head = json.dumps({"inputs": [entry], "parameters": {
            "binary_data_output": True}}).encode()
        return {"Inference-Header-Content-Length": str(len(head))}, \
            head + self.packed

    def same(self, headers, body, binary):
        if not binary:
            return json.loads(body)["outputs"][0]["data"] == self.values
        size = int(headers["inference-header-content-length"])
        return body[size:] == self.packed

    def grpc(self, **kw):
        return infer(self.model, tensor("IN", "INT32", self.shape,
                                        self.packed), **kw)


def repeated(values, delay=1, **kw):
    n = len(values)
    return infer(REPEAT,
                 tensor("IN", "INT32", [n], struct.pack(f"<{n}i", *values)),
                 tensor("DELAY", "UINT32", [n], struct.pack("<I", delay) * n),
                 tensor("WAIT", "UINT32", [1], bytes(4)), **kw)
