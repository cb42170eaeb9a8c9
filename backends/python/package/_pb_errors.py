"""The exception of this API, and the error that a response carries."""

from _pb_arguments import Choice, text


class TritonModelException(Exception):
    """Raised by this API, and by models."""


class _ErrorCode(Choice):
    """As in the C API."""

    UNKNOWN = 0
    INTERNAL = 1
    NOT_FOUND = 2
    INVALID_ARG = 3
    UNAVAILABLE = 4
    UNSUPPORTED = 5
    ALREADY_EXISTS = 6
    CANCELLED = 7


class _Codes(type):
    """Makes the codes read-only attributes of the class."""

    def __getattr__(cls, name):
        try:
            return _ErrorCode[name]
        except KeyError:
            raise AttributeError(
                f"type object '{cls.__name__}' has no attribute "
                f"'{name}'") from None

    def __setattr__(cls, name, value):
        if name in _ErrorCode.__members__:
            raise AttributeError(f"TritonError.{name} cannot be set")
        super().__setattr__(name, value)

    def __dir__(cls):
        return [*super().__dir__(), *_ErrorCode.__members__]


class TritonError(metaclass=_Codes):
    """Why a request has failed, with a code of the C API."""

    __slots__ = ("_message", "_code")

    def __init__(self, message, code=_ErrorCode.INTERNAL):
        message = text(message, "message")
        if not isinstance(code, int) or isinstance(code, bool) \
                or code not in list(_ErrorCode):
            raise TypeError("TritonError(): code must be one of "
                            "TritonError's codes, not "
                            f"{code!r}")
        self._message = message
        self._code = _ErrorCode(code)

    def __getattr__(self, name):
        return getattr(type(self), name)

    def message(self):
        return self._message

    def code(self):
        return self._code

    def __str__(self):
        return self._message

    def __repr__(self):
        return f"TritonError({self._message!r}, {self._code.name})"
