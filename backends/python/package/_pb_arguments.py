"""Arguments of the API: which types stand for a text, a whole number or a real
one.  Those of numpy do, and bytes for a text, as in Triton."""

import enum
import operator

_BYTES = (bytes, bytearray)
UINT32, UINT64, INT64 = (0, 2**32 - 1), (0, 2**64 - 1), (-2**63, 2**63 - 1)


class Choice(enum.IntEnum):
    """A choice that is shown by its name, and converts to and equals its
    number; where a Choice is wanted, the number is none."""

    __str__ = enum.Enum.__str__
    __format__ = enum.Enum.__format__


def want(value, kind, what):
    """TypeError unless value is of that kind."""
    if not isinstance(value, kind):
        names = kind.__name__ if isinstance(kind, type) else " or ".join(
            k.__name__ for k in kind)
        raise TypeError(f"{what} must be of type {names}, not "
                        + type(value).__name__)
    return value


def text(value, what):
    """A str; bytes are UTF-8."""
    if isinstance(value, _BYTES):
        return value.decode()
    return want(value, str, what)


def number(value, what, bounds):
    """An int within bounds, of any kind of whole number."""
    try:
        value = operator.index(value)
    except TypeError:
        want(value, int, what)
    low, high = bounds
    if not low <= value <= high:
        raise TypeError(f"{what} must be from {low} to {high}, not {value}")
    return value


def real(value, what):
    """A float of any kind of number."""
    if not isinstance(value, (str, *_BYTES)):
        try:
            return float(value)
        except (TypeError, OverflowError):
            pass
    raise TypeError(f"{what} must be a number, not {type(value).__name__}")
