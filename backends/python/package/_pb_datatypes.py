"""Datatypes by their names, their numbers in the C API and numpy's types; the
bytes of BYTES tensors."""

import struct

import numpy as np

# (name in a configuration, number, numpy's type); BF16, 14, has none there
_ROWS = [
    ("TYPE_BOOL", 1, np.bool_),
    ("TYPE_UINT8", 2, np.uint8),
    ("TYPE_UINT16", 3, np.uint16),
    ("TYPE_UINT32", 4, np.uint32),
    ("TYPE_UINT64", 5, np.uint64),
    ("TYPE_INT8", 6, np.int8),
    ("TYPE_INT16", 7, np.int16),
    ("TYPE_INT32", 8, np.int32),
    ("TYPE_INT64", 9, np.int64),
    ("TYPE_FP16", 10, np.float16),
    ("TYPE_FP32", 11, np.float32),
    ("TYPE_FP64", 12, np.float64),
    ("TYPE_STRING", 13, np.object_),
]

TRITON_STRING_TO_NUMPY = {
    name: bool if kind is np.bool_ else kind for name, _, kind in _ROWS}

_TYPE_OF_NUMBER = {number: kind for _, number, kind in _ROWS}
_NUMBER_OF_TYPE = {kind: number for _, number, kind in _ROWS}
_NUMBER_OF_TYPE[np.bytes_] = 13

_LENGTH = struct.Struct("<I")


def triton_string_to_numpy(triton_type_string):
    """Returns numpy's type of "TYPE_..."; KeyError if there is none."""
    return TRITON_STRING_TO_NUMPY[triton_type_string]


def triton_to_numpy_type(data_type):
    """numpy's type of a datatype's number, or None."""
    return _TYPE_OF_NUMBER.get(data_type)


def numpy_to_triton_type(data_type):
    """The number of the datatype that has numpy's type or dtype, or None."""
    if data_type is None:       # for numpy.dtype() that is float64
        return None
    try:
        return _NUMBER_OF_TYPE.get(np.dtype(data_type).type)
    except TypeError:
        return None


def serialize_byte_tensor(input_tensor):
    """The elements in C order, each behind its length in 4 bytes; () for an
    empty array, None for an array of numbers.

    Elements of an object array that are not bytes go through str() and
    UTF-8.  A numpy bytes_ array has lost the zeros at the ends of its
    elements.
    """
    if input_tensor.size == 0:
        return ()
    if input_tensor.dtype.type not in (np.object_, np.bytes_):
        return None
    parts = []
    for element in input_tensor.ravel(order="C").tolist():
        if not isinstance(element, bytes):
            element = str(element).encode("utf-8")
        parts.append(_LENGTH.pack(len(element)))
        parts.append(element)
    return b"".join(parts)


def deserialize_bytes_tensor(encoded_tensor):
    """A flat object array of the bytes that serialize_byte_tensor has written;
    struct.error where a length or an element is cut off."""
    view = memoryview(encoded_tensor).cast("B")
    elements, at = [], 0
    while at < len(view):
        (length,) = _LENGTH.unpack_from(view, at)
        at += _LENGTH.size
        if length > len(view) - at:
            raise struct.error(
                f"element {len(elements)} has {length} bytes, and only "
                f"{len(view) - at} are left")
        elements.append(bytes(view[at:at + length]))
        at += length
    array = np.empty(len(elements), dtype=np.object_)
    array[:] = elements
    return array
