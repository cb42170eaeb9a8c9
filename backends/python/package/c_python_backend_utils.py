"""The module of this name in Triton has its native classes; some models import
them from there."""

from _host import (InferenceRequest, InferenceResponse,
                   InferenceResponseSender, InferenceTrace, Logger,
                   MemoryType, Metric, MetricFamily, MetricKind,
                   PreferredMemory, ResponseIterator, Tensor, is_model_ready,
                   load_model, shared_memory, unload_model)
from _pb_errors import TritonError, TritonModelException

SharedMemory = type(shared_memory)
COUNTER = MetricKind.COUNTER
GAUGE = MetricKind.GAUGE
HISTOGRAM = MetricKind.HISTOGRAM
TRITONSERVER_MEMORY_CPU = MemoryType.TRITONSERVER_MEMORY_CPU
TRITONSERVER_MEMORY_GPU = MemoryType.TRITONSERVER_MEMORY_GPU

__all__ = [
    "COUNTER", "GAUGE", "HISTOGRAM", "InferenceRequest", "InferenceResponse",
    "InferenceResponseSender", "InferenceTrace", "Logger", "MemoryType",
    "Metric", "MetricFamily", "MetricKind", "PreferredMemory",
    "ResponseIterator", "SharedMemory",
    "TRITONSERVER_MEMORY_CPU", "TRITONSERVER_MEMORY_GPU", "Tensor",
    "TritonError", "TritonModelException", "is_model_ready", "load_model",
    "shared_memory", "unload_model"]
