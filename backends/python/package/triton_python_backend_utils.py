"""Triton's API of models in Python, as a model.py imports it.

The classes and functions that reach into the server come from the host that
runs the model; the rest is pure Python.  json, np and struct are names of
Triton's module, too.
"""

import json
import struct

import numpy as np

from _host import (InferenceRequest, InferenceResponse,
                   InferenceResponseSender, InferenceTrace, Logger,
                   MemoryType, MetricFamily, PreferredMemory,
                   ResponseIterator, Tensor, get_model_dir, is_model_ready,
                   load_model, unload_model)
from _pb_datatypes import (TRITON_STRING_TO_NUMPY, deserialize_bytes_tensor,
                           numpy_to_triton_type, serialize_byte_tensor,
                           triton_string_to_numpy, triton_to_numpy_type)
from _pb_errors import TritonError, TritonModelException
from _pb_lookup import (get_input_config_by_name, get_input_tensor_by_name,
                        get_output_config_by_name, get_output_tensor_by_name,
                        using_decoupled_model_transaction_policy)
from _pb_model_config import ModelConfig

TRITONSERVER_REQUEST_FLAG_SEQUENCE_START = 1
TRITONSERVER_REQUEST_FLAG_SEQUENCE_END = 2
TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1
TRITONSERVER_REQUEST_RELEASE_ALL = 1
TRITONSERVER_REQUEST_RELEASE_RESCHEDULE = 2
TRITONSERVER_MEMORY_CPU = MemoryType.TRITONSERVER_MEMORY_CPU
TRITONSERVER_MEMORY_GPU = MemoryType.TRITONSERVER_MEMORY_GPU

# kinds of metrics and levels of the log, which Triton's module has, too
COUNTER = MetricFamily.COUNTER
GAUGE = MetricFamily.GAUGE
HISTOGRAM = MetricFamily.HISTOGRAM

__all__ = [
    "COUNTER", "GAUGE", "HISTOGRAM", "InferenceRequest", "InferenceResponse",
    "InferenceResponseSender", "InferenceTrace", "Logger", "MemoryType",
    "MetricFamily", "ModelConfig", "PreferredMemory", "ResponseIterator",
    "TRITONSERVER_MEMORY_CPU", "TRITONSERVER_MEMORY_GPU",
    "TRITONSERVER_REQUEST_FLAG_SEQUENCE_END",
    "TRITONSERVER_REQUEST_FLAG_SEQUENCE_START",
    "TRITONSERVER_REQUEST_RELEASE_ALL",
    "TRITONSERVER_REQUEST_RELEASE_RESCHEDULE",
    "TRITONSERVER_RESPONSE_COMPLETE_FINAL", "TRITON_STRING_TO_NUMPY",
    "Tensor", "TritonError", "TritonModelException",
    "deserialize_bytes_tensor", "get_input_config_by_name",
    "get_input_tensor_by_name", "get_model_dir", "get_output_config_by_name",
    "get_output_tensor_by_name", "is_model_ready", "json", "load_model", "np",
    "numpy_to_triton_type", "serialize_byte_tensor", "struct",
    "triton_string_to_numpy", "triton_to_numpy_type", "unload_model",
    "using_decoupled_model_transaction_policy"]
