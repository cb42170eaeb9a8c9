"""Log, metrics and control of models."""

import sys
import weakref

from _host_channel import (FAMILY_DELETE, FAMILY_NEW, LOAD, LOG, METRIC_DELETE,
                           METRIC_NEW, METRIC_SET, METRIC_VALUE, MODEL_READY,
                           UNLOAD, State, ask, must, push, rejected, tell)
from _pb_arguments import Choice, real, text, want
from _values import TritonError, TritonModelException


class LogLevel(Choice):
    """The log levels of the server."""

    INFO = 0
    WARNING = 1
    ERROR = 2
    VERBOSE = 3


class Logger:
    """Writes to the server's log, with file and line of the caller."""

    LogLevel = LogLevel
    INFO = LogLevel.INFO
    WARNING = LogLevel.WARNING
    ERROR = LogLevel.ERROR
    VERBOSE = LogLevel.VERBOSE

    @staticmethod
    def log(message, level=LogLevel.INFO):
        _log(message, want(level, LogLevel, "level"))

    @staticmethod
    def log_info(message):
        _log(message, LogLevel.INFO)

    @staticmethod
    def log_warn(message):
        _log(message, LogLevel.WARNING)

    @staticmethod
    def log_error(message):
        _log(message, LogLevel.ERROR)

    @staticmethod
    def log_verbose(message):
        _log(message, LogLevel.VERBOSE)


def _log(message, level):
    message = text(message, "a log message")
    frame = sys._getframe(2)
    push(LOG, 0, [level.value, frame.f_code.co_filename, frame.f_lineno or 0,
                  message])


class MetricKind(Choice):
    """As in the C API."""

    COUNTER = 0
    GAUGE = 1
    HISTOGRAM = 2


class Metric:
    """A number with labels; deleted with its family."""

    _OPERATIONS = ("increment", "set", "observe")

    def __init__(self, family, labels=None, buckets=None):
        self._number = None
        prefix = "Failed to create metric. "
        if labels is not None and not isinstance(labels, dict):
            raise TritonModelException(prefix + "Labels must be a "
                                       "dictionary.")
        if buckets is not None and not isinstance(buckets, list):
            raise TritonModelException(prefix + "Buckets must be a list.")
        for key, value in (labels or {}).items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise TritonModelException(
                    prefix + "Labels must be of str and str.")
        if family._kind is MetricKind.HISTOGRAM:
            if buckets is None:
                raise TritonModelException(
                    prefix + "Missing required buckets.")
        elif buckets is not None:
            raise TritonModelException(prefix + "Unexpected buckets found.")
        if buckets is not None:
            buckets = [real(b, "a bucket") for b in buckets]
        self._family = weakref.ref(family)
        self._number = must(
            METRIC_NEW, family._number,
            [[[k, v] for k, v in (labels or {}).items()], buckets],
            "Error when creating Metric: ")

    def _call(self, kind, value, prefix):
        if self._family() is None:
            raise TritonModelException(
                prefix + "Invalid metric operation as the corresponding "
                "'MetricFamily' has been deleted. The 'MetricFamily' object "
                "should be deleted AFTER its corresponding 'Metric' objects "
                "have been deleted.")
        return must(kind, self._number, value, prefix)

    def _change(self, operation, value):
        value = real(value, "a metric's value")
        self._call(METRIC_SET, [operation, value],
                   f"Failed to {self._OPERATIONS[operation]} metric value: ")

    def increment(self, value):
        self._change(0, value)

    def set(self, value):
        self._change(1, value)

    def observe(self, value):
        self._change(2, value)

    def value(self):
        return self._call(METRIC_VALUE, None, "Failed to get metric value: ")

    def __del__(self):
        if getattr(self, "_number", None) is not None:
            tell(METRIC_DELETE, self._number)


class MetricFamily:
    """Metrics of one name, which are deleted with it."""

    COUNTER = MetricKind.COUNTER
    GAUGE = MetricKind.GAUGE
    HISTOGRAM = MetricKind.HISTOGRAM

    def __init__(self, name, description, kind):
        self._number = None
        name = text(name, "name")
        description = text(description, "description")
        self._kind = want(kind, MetricKind, "kind")
        self._number = must(FAMILY_NEW, 0, [kind.value, name, description],
                            "Error when creating MetricFamily: ")

    def Metric(self, labels=None, buckets=None):    # pylint: disable=C0103
        return Metric(self, labels, buckets)

    def __del__(self):
        if getattr(self, "_number", None) is not None:
            tell(FAMILY_DELETE, self._number)


def _check_control():
    if State.completing or State.now == State.FINALIZING:
        raise TritonModelException(
            "Model loading API is not supported in auto_complete_config and "
            "finalize.")


def load_model(model_name, config="", files=None):
    """Returns when the model is ready."""
    _check_control()
    model_name = text(model_name, "model_name")
    config = text(config, "config")
    if files is not None:
        if not isinstance(files, dict):
            raise TritonModelException(
                f"failed to load model '{model_name}', files should be a "
                "dictionary of file paths and file contents")
        files = {text(k, "a file's name"): v for k, v in files.items()}
        for contents in files.values():
            want(contents, (bytes, bytearray), "a file's contents")
    must(LOAD, 0, [model_name, config or None,
                   [[k, v] for k, v in (files or {}).items()]],
         "Failed to load model: ")


def unload_model(model_name, unload_dependents=False):
    """Returns when unloading has begun."""
    _check_control()
    model_name = text(model_name, "model_name")
    must(UNLOAD, 0, [model_name, 0, bool(unload_dependents)],
         "Failed to unload model: ")


def is_model_ready(model_name, model_version=""):
    """Returns whether the model is ready for requests."""
    model_name = text(model_name, "model_name")
    model_version = text(model_version, "model_version")
    prefix = "Failed to check model readiness: "
    version = -1
    if model_version:
        try:
            version = int(model_version)
        except ValueError:
            pass
        if version < 0:
            raise rejected(
                prefix, "failed to get model version from specified version "
                f"string '{model_version}', version should be an integral "
                "value > 0")
    error, ready = ask(MODEL_READY, 0, [model_name, version, False])
    if error is not None and error.code() not in (TritonError.NOT_FOUND,
                                                  TritonError.UNAVAILABLE):
        raise rejected(prefix, error.message())
    return bool(ready)


def get_model_dir():
    """Returns the directory of the model's version."""
    return State.model_dir
