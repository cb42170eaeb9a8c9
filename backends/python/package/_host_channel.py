"""Messages between host and server, with the numbers of channel.h."""

import _native
from _pb_arguments import INT64
from _values import TritonError, TritonModelException

INITIALIZE, COMPLETE, EXECUTE, FINALIZE, READY = range(1, 6)

(HELLO, DONE, _FREE, LOG, SEND, CANCELLED, CLOSE, EXEC, NEXT, STREAM_CANCEL,
 STREAM_CLOSE, LOAD, UNLOAD, MODEL_READY, FAMILY_NEW, FAMILY_DELETE,
 METRIC_NEW, METRIC_DELETE, METRIC_SET, METRIC_VALUE, GPU_NEW, _GPU_FREE,
 _GPU_CLOSED, GPU_READY) = range(1, 25)

push = _native.push


class State:
    """The phase of the model, which decides what calls are possible."""

    LOADING, SERVING, FINALIZING = range(3)

    now = LOADING
    decoupled = False
    zero_copy = False           # arrays of inputs are read-only
    completing = False
    name = ""                   # the instance's
    model_dir = ""


def ask(kind, number=0, value=None):
    """Returns the reply to a call, a TritonError if the server rejects it."""
    error, reply = _native.call(kind, number, value)
    if error is not None:
        return TritonError(error[1], error[0]), None
    return None, reply


def must(kind, number=0, value=None, prefix=""):
    """Returns the reply to a call; raises if the server rejects it."""
    error, reply = _native.call(kind, number, value)
    if error is not None:
        raise rejected(prefix, error[1]) if prefix \
            else TritonModelException(error[1])
    return reply


def rejected(prefix, message):
    """Returns the exception of a rejected call in Triton's form."""
    return TritonModelException(
        f"{prefix}Failed to process the request for model '{State.name}', "
        f"message: {message}")


def tell(kind, number=0, value=None):
    """Sends from a finalizer, where exceptions are ignored."""
    try:
        push(kind, number, value)
    except Exception:                       # pylint: disable=W0718
        pass


def check_parameters(parameters):
    """Converts a model's dict to [[key, value]...]."""
    if parameters is None:
        return []
    if not isinstance(parameters, dict):
        raise TritonModelException(
            f"Expect parameters to be a dict, got {type(parameters)}")
    for key, value in parameters.items():
        if not isinstance(key, str):
            raise TritonModelException(
                "Expect parameters keys to have type str, found type "
                f"{type(key)}")
        if not isinstance(value, (bool, int, str)):
            raise TritonModelException(
                "Expect parameters values to have type bool/int/str, found "
                f"type {type(value)}")
    return [[k, v] for k, v in parameters.items()]


def unsupported(parameters):
    """The error of a response whose parameters the server does not take:
    numbers have 64 bits there.  None: it takes them."""
    low, high = INT64
    for _, value in parameters:
        if isinstance(value, int) and not low <= value <= high:
            return TritonError("Unsupported value type on parameters",
                               TritonError.INVALID_ARG)
    return None
