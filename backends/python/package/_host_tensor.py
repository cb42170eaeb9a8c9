"""Tensors: numpy arrays of a model, or bytes of the server."""

import _native
import numpy as np

from _host_channel import GPU_NEW, State, ask
from _pb_arguments import INT64, Choice, number, text, want
from _values import (TritonModelException, deserialize_bytes_tensor,
                     numpy_to_triton_type, serialize_byte_tensor,
                     triton_to_numpy_type)

BYTES, BF16 = 13, 14

_DTYPES = {n: np.dtype(triton_to_numpy_type(n)) for n in range(1, 13)}
_NUMBERS = {d: n for n, d in _DTYPES.items()}

# DLPack's code and bits of a datatype, and back
_DLPACK = {1: (6, 8), 2: (1, 8), 3: (1, 16), 4: (1, 32), 5: (1, 64),
           6: (0, 8), 7: (0, 16), 8: (0, 32), 9: (0, 64), 10: (2, 16),
           11: (2, 32), 12: (2, 64), BF16: (4, 16)}
_OF_DLPACK = {kind: number for number, kind in _DLPACK.items()}
_CUDA = 2                   # DLPack's device; others are copied to the CPU
_DEVICES = {1, 3}           # the CPU's memory, and what is pinned of it
_LEGACY = 1                 # DLPack's stream: others wait for it

_Device = _native.Device
_usable = {}                # by GPU: why the server's memory is not opened


class MemoryType(Choice):
    """Kinds of memory of a tensor."""

    TRITONSERVER_MEMORY_GPU = 0
    TRITONSERVER_MEMORY_CPU = 1


class PreferredMemory:
    """The memory that a model prefers for outputs of another model."""

    __slots__ = ("_type", "_device")

    def __init__(self, preferred_memory_type, preferred_device_id=0):
        self._type = want(preferred_memory_type, MemoryType,
                          "preferred_memory_type")
        self._device = number(preferred_device_id, "preferred_device_id",
                              INT64)

    def _gpu(self):
        """The GPU for outputs; None: they are to be on the CPU."""
        if self._type != MemoryType.TRITONSERVER_MEMORY_GPU:
            return None
        return self._device if why_not_on_gpu(self._device) is None else None


def why_not_on_gpu(device):
    """Why this process cannot open memory of the server's on a GPU; None: it
    can."""
    if device not in _usable:
        why = _native.gpu(device)
        if why is None:
            error, memory = ask(GPU_NEW, 0, [device, 1])
            why = error.message() if error is not None \
                else _native.memory(memory)[1]
        _usable[device] = why
    return _usable[device]


def _capsule(tensor):
    """Returns the capsule of another library's tensor."""
    kind, device = tensor.__dlpack_device__()
    if int(kind) in _DEVICES:
        return tensor.__dlpack__()
    if int(kind) == _CUDA and _native.gpu(int(device)) is None:
        return tensor.__dlpack__(stream=_LEGACY)
    return _capsule_of_copy(tensor)


def _capsule_of_copy(tensor):
    """Returns the capsule of a copy in CPU memory, made by the tensor's own
    library: by DLPack's arguments or, in older ones, by the tensor's cpu()."""
    try:
        return tensor.__dlpack__(dl_device=(1, 0))
    except (TypeError, ValueError, BufferError) as e:
        if not callable(getattr(tensor, "cpu", None)):
            raise TritonModelException(
                "it lies on a GPU, and its library copies it to the CPU "
                f"neither by __dlpack__(dl_device=...) ({e}) nor by cpu()") \
                from e
    return tensor.cpu().__dlpack__()


class Tensor:
    """A named tensor.  _data: an array; _buffer: bytes; one may be None.

    Strings of an array are copied at once: a model may use it again.
    """

    __slots__ = ("_name", "_dtype", "_shape", "_data", "_buffer")

    def __init__(self, name, numpy_array):
        name = text(name, "a tensor's name")
        if not isinstance(numpy_array, np.ndarray):
            raise TypeError("a tensor needs a numpy array, not "
                            + type(numpy_array).__name__)
        if not name:
            raise TritonModelException("Tensor name cannot be an empty "
                                       "string.")
        number = _NUMBERS.get(numpy_array.dtype)
        if number is None:
            number = numpy_to_triton_type(numpy_array.dtype)
            if number is None:
                raise TritonModelException(
                    "NumPy dtype is not supported. Tensor "
                    f"'{name}' has {numpy_array.dtype}.")
            if not numpy_array.dtype.isnative:
                numpy_array = numpy_array.astype(
                    numpy_array.dtype.newbyteorder("="))
        if not numpy_array.flags.c_contiguous:
            numpy_array = numpy_array.copy(order="C")
        self._name = name
        self._dtype = number
        self._shape = list(numpy_array.shape)
        self._data = numpy_array
        self._buffer = None if number != BYTES \
            else serialize_byte_tensor(numpy_array) or b""

    @classmethod
    def _of(cls, message):
        """Makes a tensor from [name, datatype, shape, bytes]."""
        self = cls.__new__(cls)
        self._name, self._dtype, self._shape, self._buffer = message
        self._data = None
        return self

    def _message(self):
        """Returns [name, datatype, shape, bytes], not copied."""
        return [self._name, self._dtype, self._shape,
                self._data if self._buffer is None else self._buffer]

    def name(self):
        return self._name

    def shape(self):
        return list(self._shape)

    def triton_dtype(self):
        return self._dtype

    def is_cpu(self):
        return self._buffer.__class__ is not _Device

    def as_numpy(self):
        """Returns an array, writable unless it is one of ZERO_COPY_INPUTS."""
        array = self._data
        if array is None:
            if self._buffer.__class__ is _Device:
                raise TritonModelException(
                    "Tensor is stored in GPU and cannot be converted to "
                    "NumPy.")
            dtype = _DTYPES.get(self._dtype)
            if dtype is not None:
                array = np.ndarray(self._shape, dtype, self._buffer)
            elif self._dtype == BYTES:
                array = deserialize_bytes_tensor(self._buffer).reshape(
                    self._shape)
            else:
                raise TritonModelException(
                    "Tensor dtype is BF16 and cannot be converted to NumPy. "
                    "Use to_dlpack() and from_dlpack() instead.")
            if State.zero_copy:
                array.flags.writeable = False
            self._data = array
        return array

    @staticmethod
    def from_dlpack(name, tensor):
        """Makes a tensor from a capsule, or an object that exports one."""
        name = text(name, "name")
        if not name:
            raise TritonModelException("Tensor name cannot be an empty "
                                       "string.")
        capsule = tensor
        if hasattr(tensor, "__dlpack__") \
                and hasattr(tensor, "__dlpack_device__"):
            try:
                capsule = _capsule(tensor)
            except Exception as e:
                raise TritonModelException(
                    f"tensor '{name}' gives no DLPack capsule: {e}") from e
        elif type(tensor).__name__ != "PyCapsule":
            raise TritonModelException(
                "Provided tensor is not supported. Tensor must be a DLPack "
                "capsule or have `__dlpack__` and `__dlpack_device__` "
                f"attributes; '{name}' is a {type(tensor).__name__}")
        try:
            buffer, code, bits, shape = _native.take(capsule)
        except (ValueError, RuntimeError) as e:
            raise TritonModelException(str(e)) from None
        number = _OF_DLPACK.get((code, bits))
        if number is None:
            raise TritonModelException(
                f"DType code \"{code}\" is not supported. Tensor '{name}' has "
                f"{bits} bits of it.")
        return Tensor._of([name, number, shape, buffer])

    def to_dlpack(self):
        """Returns a capsule; of a copy if the memory is read-only."""
        return self._export(False)

    def _export(self, copied):
        kind = _DLPACK.get(self._dtype)
        if kind is None:
            raise TritonModelException(
                "DLPack does not have support for string tensors.")
        data = self._buffer if self._data is None else self._data
        if data.__class__ is _Device:
            device, why = _native.memory(data)
            if why is not None:
                raise TritonModelException(
                    f"tensor '{self._name}' lies on GPU {device}, which this "
                    f"process cannot open: {why}")
        elif copied or memoryview(data).readonly:
            # bytearray(data) of an integer scalar has as many bytes as it says
            data = bytearray(memoryview(data))
        return _native.export(self, data, *kind, self._shape)

    def __dlpack__(self, stream=None, *, max_version=None, dl_device=None,
                   copy=None):
        """Returns a capsule; no stream has to wait, as the bytes are there."""
        if dl_device is not None \
                and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"tensor '{self._name}' is not copied to "
                              "another device")
        if copy and not self.is_cpu():
            raise BufferError(f"tensor '{self._name}' is not copied on its "
                              "GPU")
        return self._export(bool(copy))

    def __dlpack_device__(self):
        if self._buffer.__class__ is _Device:
            return (_CUDA, _native.memory(self._buffer)[0])
        return (1, 0)
