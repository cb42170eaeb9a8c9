"""Takes the server's tasks and runs the model: one task after another, except
is_ready and coroutines of a decoupled model."""

import asyncio
import importlib
import inspect
import json
import os
import signal
import sys
import threading
import traceback

import _native
import triton_python_backend_utils          # pylint: disable=W0611  # noqa
from _host_channel import (CLOSE, COMPLETE, DONE, EXECUTE, FINALIZE, GPU_READY,
                           HELLO, INITIALIZE, State, push)
from _host_request import (FINAL, ONE_RESPONSE, RESCHEDULE,
                           InferenceRequest, InferenceResponse)
from _host_server import Logger
from _host_tensor import why_not_on_gpu
from _values import ModelConfig, TritonError

_INTERNAL = 1
_IMPORTLIB = importlib.__file__
_PROBE = bytes(_native.INLINE_MAX + 1)


def attach(channel, event, socket):
    """Opens the channel."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _native.attach(channel, event, socket)


def run(package):
    """Says hello, with bytes by which the server tests whether it can read
    this process's memory, and runs tasks until the model is finalized."""
    push(HELLO, 0, [_PROBE])
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.reconfigure(line_buffering=True)
    model = Model(package)
    while model is not None:
        kind, task, value = _native.next(False)
        if kind == EXECUTE:
            model.execute(task, value)
        elif kind == INITIALIZE:
            push(DONE, task, model.initialize(*value))
        elif kind == COMPLETE:
            push(DONE, task, model.complete(*value))
            model = None
        elif kind == FINALIZE:
            model.finalize()
            push(DONE, task, [None])
            model = None


class ModelError(Exception):
    """An error of the model with a complete text."""


def describe(error, file=None):
    """Returns an exception's type, text and stack in Triton's form, innermost
    frame first; instead of the stack the file, if no frame is a model's."""
    if isinstance(error, ModelError):
        return str(error)
    try:
        said = str(error) or "<EMPTY MESSAGE>"
    except Exception:                           # pylint: disable=W0718
        said = "<MESSAGE UNAVAILABLE DUE TO ANOTHER EXCEPTION>"
    said = f"{type(error).__name__}: {said}"
    frames = traceback.extract_tb(error.__traceback__)
    ours = os.path.dirname(os.path.abspath(__file__)) + os.sep + "_host"
    places = [f"  {f.filename}({f.lineno}): {f.name}\n"
              for f in reversed(frames)
              if not f.filename.startswith((ours, _IMPORTLIB))
              and not f.filename.startswith("<frozen importlib")]
    if isinstance(error, SyntaxError):          # with its line of the file
        places += traceback.format_exception_only(error)
    elif not places and file:
        places = [f"  {file}\n"]
    return said + "\n\nAt:\n" + "".join(places) if places else said


class Model:
    """A model.py and its TritonPythonModel."""

    def __init__(self, package):
        self._package = package
        self._instance = None
        self._loop = None           # of asynchronous functions

    def initialize(self, paths, arguments):
        """Returns [error or none, whether there is is_ready]."""
        try:
            args = dict(arguments)
            State.name = args["model_instance_name"]
            self._instance = self._import(paths, args)()
            if not callable(getattr(self._instance, "execute", None)):
                raise ModelError(
                    f"Python model {paths[3]} does not implement `execute` "
                    "method.")
            if hasattr(self._instance, "initialize"):
                self._instance.initialize(args)
        except BaseException as e:              # pylint: disable=W0718
            return [[_INTERNAL, describe(e, paths[3])], False]
        if paths[6] is not None:        # after the model's choice of devices
            push(GPU_READY, 0, [why_not_on_gpu(paths[6])])
        State.now = State.SERVING
        has_ready = callable(getattr(self._instance, "is_ready", None))
        if has_ready:
            threading.Thread(target=self._probe, daemon=True,
                             name="is_ready").start()
        return [None, has_ready]

    def complete(self, paths, arguments):
        """Returns [error or none, the configuration or none]."""
        try:
            State.completing = True
            args = dict(arguments)
            State.name = args["model_name"]
            model = self._import(paths, args)
            config = ModelConfig(args["model_config"])
            if hasattr(model, "auto_complete_config"):
                config = model.auto_complete_config(config)
            if not isinstance(config, ModelConfig):
                raise ModelError(
                    "auto_complete_config function in model "
                    f"'{args['model_name']}' must return a valid "
                    "pb.ModelConfig object.")
            return [None, json.dumps(config.as_dict())]
        except BaseException as e:              # pylint: disable=W0718
            return [[_INTERNAL, describe(e, paths[3])], None]

    def _import(self, paths, args):
        """Imports the class; directories come after the interpreter's."""
        (version_dir, model_dir, backend_dir, file, State.decoupled,
         State.zero_copy, _) = paths
        State.model_dir = os.path.abspath(version_dir)
        sys.path.remove(self._package)
        if backend_dir is None:
            sys.path += [version_dir, model_dir, self._package]
            name = os.path.relpath(file, model_dir)
        else:
            sys.path += [backend_dir, self._package]
            name = os.path.basename(file)
        name = name.removesuffix(".py").replace(os.sep, ".")
        module = importlib.import_module(name)
        return module.TritonPythonModel

    def finalize(self):
        State.now = State.FINALIZING
        if hasattr(self._instance, "finalize"):
            try:
                self._instance.finalize()
            except BaseException as e:          # pylint: disable=W0718
                Logger.log_error(f"finalize of {State.name}: {describe(e)}")
        self._instance = None

    def execute(self, task, messages):
        """Answers the task with [error or none, results]."""
        requests = [InferenceRequest._of(m) for m in messages]
        try:
            answers = self._instance.execute(requests)
            if inspect.iscoroutine(answers):
                answers = self._await(answers, requests)
            results = self._results(requests, answers)
            answers = None
            push(DONE, task, [None, results])
        except BaseException as e:              # pylint: disable=W0718
            for request in requests:
                if request._sender is not None:
                    request._sender._closed = True
            push(DONE, task, [self._failure(e), []])

    def _failure(self, error):
        """Logs an exception and returns the text for clients."""
        text = "Failed to process the request(s) for model " \
            f"'{State.name}', message: {describe(error)}"
        Logger.log_error(text)
        return text

    def _results(self, requests, answers):
        """Returns [[release flags, response or none]...]."""
        if answers is None and (State.decoupled or any(
                r._sender is not None or r._release == RESCHEDULE
                for r in requests)):
            answers = [None] * len(requests)
        elif State.decoupled:
            raise ModelError(
                f"Python model '{State.name}' is using the decoupled mode "
                "and the execute function must return None.")
        elif not isinstance(answers, list):
            raise ModelError(
                "Expected a list in the execute return, found type '"
                f"{type(answers)}'.")
        if len(answers) != len(requests):
            raise ModelError(
                "Number of InferenceResponse objects do not match the number "
                "of InferenceRequest objects. InferenceRequest(s) size is:"
                f"{len(requests)}, and InferenceResponse(s) size is:"
                f"{len(answers)}\n")
        return [self._result(r, a) for r, a in zip(requests, answers)]

    def _result(self, request, answer):
        if answer is None:
            if request._sender is None:
                push(CLOSE, request._number, None)      # nobody answers it
            return [request._release, None]
        if request._release == RESCHEDULE:
            raise ModelError(
                "Expected a None object in the execute function return list "
                f"for reschduled request, found type '{type(answer)}'.")
        if not isinstance(answer, InferenceResponse):
            raise ModelError(
                "Expected an 'InferenceResponse' object in the execute "
                f"function return list, found type '{type(answer)}'.")
        if request._sender is not None and request._sender._responded:
            raise ModelError(ONE_RESPONSE)
        return [request._release, answer._message(request._wanted)]

    def _await(self, answers, requests):
        """Returns the result of an asynchronous execute; that of a decoupled
        model continues in the background.  The loop runs all the time, for
        tasks that outlive an execute."""
        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=self._run, args=(self._loop,),
                             daemon=True, name="execute").start()
        if State.decoupled:
            asyncio.run_coroutine_threadsafe(
                self._decoupled(answers, requests), self._loop)
            return None
        result, error = asyncio.run_coroutine_threadsafe(
            _outcome(answers), self._loop).result()
        if error is None:
            return result
        try:
            raise error
        finally:
            del error           # its traceback has this frame, and the inputs

    def _run(self, loop):
        """Runs the loop, which a SystemExit of a task ends, until the model
        closes it."""
        while not loop.is_closed():
            try:
                loop.run_forever()
            except BaseException as e:          # pylint: disable=W0718
                Logger.log_error(f"a task of {State.name}: {describe(e)}")

    async def _decoupled(self, answers, requests):
        try:
            if await answers is not None:
                raise ModelError(
                    f"Python model '{State.name}' is using the decoupled "
                    "mode and the execute function must return None.")
        except BaseException as e:              # pylint: disable=W0718
            error = TritonError(self._failure(e))
            for request in requests:
                sender = request.get_response_sender()
                if not sender._closed:
                    sender.send(InferenceResponse(error=error), FINAL)

    def _probe(self):
        """Calls is_ready for each question of the server."""
        runner = None
        while True:
            _, task, _ = _native.next(True)
            try:
                ready = self._instance.is_ready()
                if inspect.iscoroutine(ready):
                    if runner is None:
                        runner = asyncio.Runner()
                    ready = runner.run(_of(ready))
                if not isinstance(ready, bool):
                    raise TypeError("is_ready must return a bool, not "
                                    + type(ready).__name__)
                why = None if ready else "is_ready of instance " \
                    f"'{State.name}' says that it is not ready"
            except BaseException as e:          # pylint: disable=W0718
                why = f"is_ready of instance '{State.name}' failed: " \
                    + describe(e)
            push(DONE, task, [why])


async def _of(coroutine):
    return await coroutine


async def _outcome(coroutine):
    """(result, None) or (None, exception), any."""
    try:
        return await coroutine, None
    except BaseException as e:                  # pylint: disable=W0718
        return None, e
