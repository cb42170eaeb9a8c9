"""Tensors on a GPU by the driver alone, in the place of torch or cupy: a file
beside the model.py of a test (python_gpu.py)."""

import ctypes
import os

import numpy as np

_cu = ctypes.CDLL(os.environ.get("INFERENCE_CUDA_DRIVER", "libcuda.so.1"))
_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p,
                               ctypes.c_void_p]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]

_NAME, _USED = b"dltensor", b"used_dltensor"


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
                ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64)]


class _Managed(ctypes.Structure):
    pass


_DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p),
                     ("deleter", _DELETER)]


def must(function, *args):
    rc = getattr(_cu, function)(*args)
    if rc != 0:
        raise RuntimeError(f"{function}: {rc}")


class Gpu:
    """The context of a GPU, as `with Gpu(n):`."""

    contexts = {}

    def __init__(self, number=0):
        if number not in self.contexts:
            device, context = ctypes.c_int(), ctypes.c_void_p()
            must("cuInit", 0)
            must("cuDeviceGet", ctypes.byref(device), number)
            must("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
            self.contexts[number] = context
        self.context = self.contexts[number]

    def __enter__(self):
        must("cuCtxPushCurrent_v2", self.context)

    def __exit__(self, *_):
        must("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


def read(address, size, number=0):
    """The bytes that lie there."""
    data = bytearray(size)
    with Gpu(number):
        if size:
            must("cuMemcpyDtoHAsync_v2",
                 (ctypes.c_char * size).from_buffer(data),
                 ctypes.c_uint64(address), ctypes.c_size_t(size), None)
        must("cuStreamSynchronize", None)
    return bytes(data)


class View:
    """The memory of a GPU that a capsule holds, until close()."""

    def __init__(self, capsule):
        self.managed = ctypes.cast(
            _api.PyCapsule_GetPointer(capsule, _NAME),
            ctypes.POINTER(_Managed))
        _api.PyCapsule_SetName(capsule, _USED)
        t = self.managed.contents.tensor
        self.device = (t.device, t.device_id)
        self.shape = (ctypes.c_int64 * t.ndim).from_address(t.shape)[:]
        self.kind = (t.code, t.bits, t.lanes)
        self.address = (t.data or 0) + t.offset

    def read(self):
        size = self.kind[1] // 8
        for dim in self.shape:
            size *= dim
        return read(self.address, size, self.device[1])

    def close(self):
        self.managed.contents.deleter(self.managed)


def bytes_of(tensor):
    """Those of a tensor of the API, wherever it is."""
    if tensor.is_cpu():
        return tensor.as_numpy().tobytes()
    view = View(tensor.__dlpack__())
    try:
        assert view.device == tensor.__dlpack_device__(), view.device
        assert list(view.shape) == tensor.shape(), view.shape
        return view.read()
    finally:
        view.close()


class Memory:
    """An array of a library that has it on a GPU; kind: DLPack's code and bits
    of its datatype."""

    live = 0                    # that nobody has deleted
    deleted = 0                 # capsules
    streams = []                # that consumers have named

    def __init__(self, data, number=0, kind=(1, 8), shape=None):
        self.size, self.number, self.kind = len(data), number, kind
        self.shape = [self.size] if shape is None else shape
        self.address = ctypes.c_uint64()
        with Gpu(number):
            must("cuMemAlloc_v2", ctypes.byref(self.address),
                 ctypes.c_size_t(max(self.size, 1)))
            source = bytearray(data)
            if self.size:
                must("cuMemcpyHtoDAsync_v2", self.address,
                     (ctypes.c_char * self.size).from_buffer(source),
                     ctypes.c_size_t(self.size), None)
            must("cuStreamSynchronize", None)
        Memory.live += 1

    def __del__(self):
        with Gpu(self.number):
            must("cuMemFree_v2", self.address)
        Memory.live -= 1

    def __dlpack_device__(self):
        return (2, self.number)

    def __dlpack__(self, stream=None):
        Memory.streams.append(stream)
        return self.capsule()

    def capsule(self):
        shape = (ctypes.c_int64 * len(self.shape))(*self.shape)
        managed = _Managed()

        def delete(_):
            Memory.deleted += 1
            _held.pop(ctypes.addressof(managed))

        managed.tensor = _Tensor(
            self.address.value, 2, self.number, len(self.shape), *self.kind, 1,
            ctypes.addressof(shape), None, 0)
        managed.deleter = _DELETER(delete)
        _held[ctypes.addressof(managed)] = (self, managed, shape)
        return _api.PyCapsule_New(ctypes.addressof(managed), _NAME, None)


_held = {}                      # by capsule: what lives as long as it


def array(data):
    return np.frombuffer(bytes(data), dtype=np.uint8)
