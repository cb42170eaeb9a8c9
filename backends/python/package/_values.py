"""The part of this API that is pure Python and does not depend on the
host."""

from _pb_datatypes import (deserialize_bytes_tensor, numpy_to_triton_type,
                           serialize_byte_tensor, triton_to_numpy_type)
from _pb_errors import TritonError, TritonModelException
from _pb_model_config import ModelConfig

__all__ = ["ModelConfig", "TritonError", "TritonModelException",
           "deserialize_bytes_tensor", "numpy_to_triton_type",
           "serialize_byte_tensor", "triton_to_numpy_type"]
