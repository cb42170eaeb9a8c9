"""The part of the models' API that uses the server."""

from _host_request import (InferenceRequest, InferenceResponse,
                           InferenceResponseSender, InferenceTrace,
                           ResponseIterator, shared_memory)
from _host_server import (Logger, Metric, MetricFamily, MetricKind,
                          get_model_dir, is_model_ready, load_model,
                          unload_model)
from _host_tensor import MemoryType, PreferredMemory, Tensor

__all__ = ["InferenceRequest", "InferenceResponse", "InferenceResponseSender",
           "InferenceTrace", "Logger", "MemoryType", "Metric", "MetricFamily",
           "MetricKind", "PreferredMemory", "ResponseIterator", "Tensor",
           "get_model_dir", "is_model_ready", "load_model", "shared_memory",
           "unload_model"]
