"""gRPC through grpcio, with the messages that tritonclient has compiled."""

import queue
import struct

import grpc
from tritonclient.grpc import service_pb2 as pb

from lib.server import SLOW

SERVICE = "/inference.GRPCInferenceService/"
CHECK = "/grpc.health.v1.Health/Check"
SERVING, NOT_SERVING = b"\x08\x01", b"\x08\x02"
SIZES = [("grpc.max_send_message_length", -1),
         ("grpc.max_receive_message_length", -1)]

# the name grpc-status as HPACK's Huffman code has it, and its length
STATUS_NAME = b"\x9a\xca\xc8\xb2\x12\x34\xda\x8f"


def parameter(value):
    """As Python's type says; an InferParameter stays as it is."""
    if isinstance(value, pb.InferParameter):
        return value
    member = {bool: "bool_param", int: "int64_param", str: "string_param",
              float: "double_param"}[type(value)]
    return pb.InferParameter(**{member: value})


def parameters(values):
    return {k: parameter(v) for k, v in (values or {}).items()}


def tensor(name, datatype, shape, data=None, parameters_=None):
    """(message, raw contents); data: bytes, or {list: elements}."""
    message = pb.ModelInferRequest.InferInputTensor(
        name=name, datatype=datatype, shape=shape,
        parameters=parameters(parameters_))
    if isinstance(data, dict):
        for field, elements in data.items():
            getattr(message.contents, field).extend(elements)
        message.contents.SetInParent()
        data = None
    return message, data


def output(name, **options):
    return pb.ModelInferRequest.InferRequestedOutputTensor(
        name=name, parameters=parameters(options))


def infer(model, *tensors, outputs=(), options=None, **fields):
    """A ModelInferRequest."""
    return pb.ModelInferRequest(
        model_name=model, inputs=[t[0] for t in tensors],
        raw_input_contents=[t[1] for t in tensors if t[1] is not None],
        outputs=outputs, parameters=parameters(options), **fields)


def numbers(model, values, **kw):
    """An inference of `IN`, INT32."""
    return infer(model, tensor("IN", "INT32", [len(values)],
                               struct.pack(f"<{len(values)}i", *values)),
                 **kw)


def strings(*texts):
    return b"".join(struct.pack("<I", len(t)) + t for t in texts)


def frame(message, flag=0, size=None):
    """A message of gRPC as it stands in DATA; size: what it claims."""
    data = message if isinstance(message, bytes) \
        else message.SerializeToString()
    return struct.pack(">BI", flag, len(data) if size is None else size) \
        + data


def frames(data):
    """[(flag, message)] of a body."""
    found, at = [], 0
    while at < len(data):
        flag, size = struct.unpack_from(">BI", data, at)
        at += 5 + size
        assert at <= len(data), "half a message"
        found.append((flag, data[at - size:at]))
    return found


def status_in(block):
    """grpc-status in a header block of nginx, None without; a number of one
    or two digits is never shorter in Huffman's code."""
    for name in (bytes([0x80 | len(STATUS_NAME)]) + STATUS_NAME,
                 b"\x0bgrpc-status"):
        at = block.find(name)
        if at >= 0:
            value = block[at + len(name):]
            return int(value[1:1 + value[0]])
    return None


class Failure(Exception):
    """A status that is not OK."""

    def __init__(self, error):
        super().__init__(f"{error.code()} {error.details()}")
        self.code = error.code()
        self.text = error.details()


class Client:
    """A channel of its own; every call has an end."""

    def __init__(self, port, prefix="", seconds=60, options=(), **kw):
        self.prefix = prefix
        self.seconds = seconds * SLOW
        self.channel = grpc.insecure_channel(
            f"127.0.0.1:{port}",
            [*SIZES, ("grpc.use_local_subchannel_pool", 1), *options], **kw)

    def unary(self, path, request, reply, timeout=None, **kw):
        try:
            return self.channel.unary_unary(
                self.prefix + path,
                request_serializer=lambda m: m if isinstance(m, bytes)
                else m.SerializeToString(),
                response_deserializer=reply and reply.FromString)(
                    request, timeout=timeout or self.seconds, **kw)
        except grpc.RpcError as e:
            raise Failure(e) from None

    def call(self, method, request=None, **kw):
        """A method of the service by its name; messages go by it, too."""
        if request is None:
            request = getattr(pb, method + "Request")()
        return self.unary(SERVICE + method, request,
                          getattr(pb, method + "Response"), **kw)

    def infer(self, *arguments, timeout=None, metadata=None, **kw):
        return self.call("ModelInfer", infer(*arguments, **kw),
                         timeout=timeout, metadata=metadata)

    def numbers(self, model, values, **kw):
        """The numbers that come back."""
        raw = self.call("ModelInfer", numbers(model, values), **kw) \
            .raw_output_contents[0]
        return list(struct.unpack(f"<{len(raw) // 4}i", raw))

    def check(self):
        return self.unary(CHECK, b"", None)

    def stream(self, **kw):
        return Stream(self, **kw)

    def close(self):
        self.channel.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Stream:
    """One ModelStreamInfer."""

    def __init__(self, client, timeout=None, raw=False, **kw):
        self.requests = queue.SimpleQueue()
        self.call = client.channel.stream_stream(
            client.prefix + SERVICE + "ModelStreamInfer",
            request_serializer=None if raw
            else pb.ModelInferRequest.SerializeToString,
            response_deserializer=pb.ModelStreamInferResponse.FromString)(
                iter(self.requests.get, None),
                timeout=timeout or client.seconds, **kw)

    def send(self, *requests):
        for request in requests:
            self.requests.put(request)

    def end(self):
        """No more requests; responses may still come."""
        self.requests.put(None)

    def read(self, count=1):
        """The next responses; fails where the stream ends before."""
        try:
            found = [next(self.call) for _ in range(count)]
        except grpc.RpcError as e:
            raise Failure(e) from None
        return found[0] if count == 1 else found

    def rest(self):
        """All further responses of a stream that ends well."""
        try:
            found = list(self.call)
        except grpc.RpcError as e:
            raise Failure(e) from None
        assert self.call.code() == grpc.StatusCode.OK
        return found

    def cancel(self):
        self.call.cancel()
        self.requests.put(None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cancel()


def number(answer):
    """The first number of a streamed response."""
    assert answer.error_message == "", answer
    raw = answer.infer_response.raw_output_contents[0]
    return struct.unpack_from("<i", raw)[0]


def is_final(answer):
    """triton_final_response, None without."""
    found = answer.infer_response.parameters
    return found["triton_final_response"].bool_param \
        if "triton_final_response" in found else None
