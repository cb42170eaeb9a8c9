"""Requests and responses: of clients, and of a model to other models."""

import asyncio
import json
import threading

import _native
from _host_channel import (CANCELLED, CLOSE, EXEC, NEXT, SEND, STREAM_CANCEL,
                           STREAM_CLOSE, State, ask, check_parameters, must,
                           tell, unsupported)
from _host_tensor import MemoryType, PreferredMemory, Tensor
from _pb_arguments import INT64, UINT32, UINT64, number, text, want
from _values import TritonError, TritonModelException

FINAL = 1
RELEASE_ALL = 1
RESCHEDULE = 2
ONE_RESPONSE = "Unable to send response. Non-decoupled model cannot send " \
    "more than one response."

_CPU = PreferredMemory(MemoryType.TRITONSERVER_MEMORY_CPU)


def _json(parameters, received):
    """The text of parameters: compact if the server has sent them."""
    return json.dumps(dict(parameters), ensure_ascii=False,
                      separators=(",", ":")) if received \
        else json.dumps(dict(parameters))


class InferenceTrace:
    """The trace of a request, to be continued in another."""

    __slots__ = ("_request", "_context")

    def __init__(self, request=None, context=None):
        self._request = request
        self._context = context

    def get_context(self):
        """OpenTelemetry's context as text, or None."""
        return self._context or None


_NO_TRACE = InferenceTrace()


class InferenceResponse:
    """Outputs and parameters, or an error."""

    __slots__ = ("_tensors", "_error", "_parameters", "_received")

    def __init__(self, output_tensors=[], error=None, parameters=None):
        if output_tensors is None or isinstance(output_tensors, (str, bytes)):
            raise TypeError("output_tensors must be a list of Tensor")
        tensors = list(output_tensors)
        for tensor in tensors:
            if tensor is None:
                raise TritonModelException(
                    "Output tensor for inference response should not be "
                    "empty.")
            if tensor.__class__ is not Tensor:
                want(tensor, Tensor, "an output tensor")
        if error is not None:
            want(error, TritonError, "error")
        self._tensors = tensors
        self._error = error
        self._parameters = check_parameters(parameters) \
            if parameters is not None else []
        self._received = False

    @classmethod
    def _of(cls, message):
        error, tensors, parameters = message
        self = cls.__new__(cls)
        self._tensors = [Tensor._of(t) for t in tensors]
        self._error = None if error is None else TritonError(error[1],
                                                             error[0])
        self._parameters = parameters
        self._received = True
        return self

    def _message(self, wanted):
        """Returns the message with those outputs only; None: all."""
        error = self._error or unsupported(self._parameters)
        if error is not None:
            return [[int(error._code), error._message], [], []]
        return [None, [t._message() for t in self._tensors
                       if wanted is None or t._name in wanted],
                self._parameters]

    def output_tensors(self):
        return list(self._tensors)

    def has_error(self):
        return self._error is not None

    def error(self):
        return self._error

    def parameters(self):
        return _json(self._parameters, self._received)


class ResponseIterator:
    """Iterates over the responses of a decoupled model."""

    def __init__(self, number):
        self._number = number
        self._responses = []
        self._position = 0
        self._ended = False

    @classmethod
    def _failed(cls, error):
        """Makes an iterator over a single error."""
        self = cls(0)
        self._responses.append(InferenceResponse(error=error))
        self._ended = True
        return self

    def __iter__(self):
        """Continues, or starts again from the first one at the end."""
        if self._ended and self._position == len(self._responses):
            self._position = 0
        return self

    def __next__(self):
        if self._position == len(self._responses):
            if self._ended:
                raise StopIteration
            self._wait()
        self._position += 1
        return self._responses[self._position - 1]

    def _wait(self):
        error, reply = ask(NEXT, self._number)
        if error is not None:
            raise TritonModelException(error.message())
        response, self._ended = reply
        self._responses.append(InferenceResponse._of(response))
        if self._ended:
            tell(STREAM_CLOSE, self._number)

    def cancel(self):
        if not self._ended:
            tell(STREAM_CANCEL, self._number)

    def __del__(self):
        if not self._ended:
            tell(STREAM_CLOSE, self._number)


class InferenceResponseSender:
    """Sends responses to a request at any time, from any thread."""

    def __init__(self, number, wanted):
        self._number = number
        self._wanted = wanted
        self._lock = threading.Lock()
        self._responded = False
        self._closed = False

    def send(self, response=None, flags=0):
        if response is not None:
            want(response, InferenceResponse, "response")
        flags = number(flags, "flags", UINT32)
        if flags not in (0, FINAL):
            raise TritonModelException(
                "Unable to send response. Unsupported flag provided.")
        if response is None and flags == 0:
            raise TritonModelException(
                "Inference Response object must be provided when the "
                "response flags is set to zero.")
        _native.check()         # a child's copy of the lock may be held
        with self._lock:
            self._check(response, flags)
            message = None if response is None \
                else response._message(self._wanted)
            must(SEND, self._number, [flags == FINAL, message])
            self._responded = self._responded or response is not None
            self._closed = flags == FINAL

    def _check(self, response, flags):
        if response is not None and self._responded and not State.decoupled:
            raise TritonModelException(ONE_RESPONSE)
        if self._closed:
            raise TritonModelException(
                "Unable to send response. Response sender has been closed.")
        if State.decoupled:
            return
        if response is None and not self._responded and flags == FINAL:
            raise TritonModelException(
                "Unable to send response. Non-decoupled model cannot send "
                "complete final before sending a response.")

    def is_cancelled(self):
        return must(CANCELLED, self._number)

    def __del__(self):
        if not getattr(self, "_closed", True):
            tell(CLOSE, self._number)


class InferenceRequest:
    """A client's request, or a request to another model."""

    __slots__ = ("_number", "_id", "_correlation", "_flags", "_timeout",
                 "_parameters", "_wanted", "_inputs", "_trace", "_sender",
                 "_release", "_model", "_version", "_preferred")

    def __init__(self, request_id="", correlation_id=0, *args, inputs=None,
                 requested_output_names=None, model_name=None,
                 model_version=-1, flags=0, timeout=0,
                 preferred_memory=_CPU, trace=_NO_TRACE, parameters=None):
        names = ("inputs", "requested_output_names", "model_name",
                 "model_version", "flags", "timeout", "preferred_memory",
                 "trace", "parameters")
        if args:
            given = dict(zip(names, args))
            if len(args) > len(names):
                raise TypeError("InferenceRequest() takes at most 11 "
                                "arguments")
            self.__init__(request_id, correlation_id, **{
                "inputs": inputs,
                "requested_output_names": requested_output_names,
                "model_name": model_name, "model_version": model_version,
                "flags": flags, "timeout": timeout,
                "preferred_memory": preferred_memory, "trace": trace,
                "parameters": parameters, **given})
            return
        self._id = text(request_id, "request_id")
        if correlation_id is None:
            raise TypeError("correlation_id must not be None")
        if not isinstance(correlation_id, (int, str)):
            raise TritonModelException(
                "Correlation ID must be integer or string")
        self._correlation = correlation_id \
            if isinstance(correlation_id, str) \
            else number(correlation_id, "correlation_id", UINT64)
        self._model = text(model_name, "model_name")
        self._version = number(model_version, "model_version", INT64)
        self._flags = number(flags, "flags", UINT32)
        self._timeout = number(timeout, "timeout", UINT64)
        self._preferred = want(preferred_memory, PreferredMemory,
                               "preferred_memory")
        self._trace = want(trace, InferenceTrace, "trace")
        self._parameters = check_parameters(parameters)
        self._inputs = self._check_inputs(inputs)
        self._wanted = self._check_names(requested_output_names)
        self._number = 0
        self._sender = None
        self._release = RELEASE_ALL

    def _check_inputs(self, inputs):
        if inputs is None or isinstance(inputs, (str, bytes)):
            raise TypeError("inputs must be a list of Tensor")
        inputs = list(inputs)
        for tensor in inputs:
            if tensor is None:
                raise self._empty("Input tensor")
            want(tensor, Tensor, "an input")
        return inputs

    def _check_names(self, names):
        if names is None or isinstance(names, (str, bytes)):
            raise TypeError("requested_output_names must be a list of str")
        names = [text(n, "a requested output's name") for n in names]
        for name in names:
            if not name:
                raise self._empty("Requested output name")
        return list(dict.fromkeys(names))       # each once

    def _empty(self, what):
        return TritonModelException(
            f"{what} for request with id '{self._id}' and model name "
            f"'{self._model}' should not be empty.")

    @classmethod
    def _of(cls, message):
        self = cls.__new__(cls)
        (self._number, self._id, self._correlation, self._flags,
         self._timeout, self._parameters, self._wanted, inputs,
         self._trace) = message
        self._inputs = [Tensor._of(t) for t in inputs]
        # a decoupled model's sender exists from the start: a forgotten request
        # is answered when its sender is freed
        self._sender = InferenceResponseSender(
            self._number, self._wanted) if State.decoupled else None
        self._release = RELEASE_ALL
        return self

    def inputs(self):
        return list(self._inputs)

    def request_id(self):
        return self._id

    def correlation_id(self):
        return self._correlation

    def flags(self):
        return self._flags

    def set_flags(self, flags):
        self._flags = number(flags, "flags", UINT32)

    def timeout(self):
        return self._timeout

    def parameters(self):
        return _json(self._parameters, self._number != 0)

    def requested_output_names(self):
        return set(self._wanted)

    def trace(self):
        if isinstance(self._trace, InferenceTrace):
            return self._trace
        return InferenceTrace(None if self._trace is None else self._number,
                              self._trace)

    def is_cancelled(self):
        return must(CANCELLED, self._number) if self._number else False

    def set_release_flags(self, flags):
        self._release = number(flags, "flags", UINT32)

    def get_response_sender(self):
        if not self._number:
            raise TritonModelException(
                "a request that the model has made has no response sender")
        if self._sender is None:
            self._sender = InferenceResponseSender(self._number, self._wanted)
        return self._sender

    def _check_exec(self):
        _native.check()         # a child may be older than its parent's state
        if State.now != State.SERVING:
            raise TritonModelException(
                "BLS is only supported during the 'execute' function.")
        if self._number:
            raise TritonModelException(
                "a request of a client is not for another model: make an "
                "InferenceRequest")

    def exec(self, decoupled=False):
        """The response, or an iterator of a decoupled model's responses."""
        self._check_exec()
        decoupled = bool(decoupled)
        error, reply = self._ask(decoupled)
        if error is not None:
            error = TritonError(f"Model {self._model} - Error when running "
                                f"inference: {error.message()}", error.code())
        if decoupled:
            return ResponseIterator._failed(error) if error is not None \
                else ResponseIterator(reply)
        return InferenceResponse(error=error) if error is not None \
            else InferenceResponse._of(reply)

    def _ask(self, decoupled):
        error = unsupported(self._parameters)
        if error is not None:
            return error, None
        return ask(EXEC, 0, [
            self._id, self._correlation, [t._message() for t in self._inputs],
            self._wanted, self._model, self._version, self._flags,
            self._timeout, self._parameters, decoupled,
            None if self._preferred is _CPU else self._preferred._gpu(),
            self._trace._request])

    def async_exec(self, decoupled=False):
        """The same, to be awaited."""
        self._check_exec()
        return asyncio.get_running_loop().run_in_executor(
            None, self._exec_awaited, decoupled)

    def _exec_awaited(self, decoupled):
        # an iteration blocks the loop: the first response is awaited here
        answer = self.exec(decoupled)
        if isinstance(answer, ResponseIterator) and not answer._ended:
            answer._wait()
        return answer


class SharedMemory:
    """The memory shared by host and server."""

    def free_memory(self):
        return _native.free_memory()


shared_memory = SharedMemory()
