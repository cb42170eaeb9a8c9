"""A model of PyTorch in Python, for `runtime: "model.py"`.

Backend python runs this file in the user's interpreter.  The version's
directory has model.py with a subclass of torch.nn.Module, and model.pt with
its weights (a state_dict) if it has any; or model.pt alone, TorchScript.

Inputs reach forward() in the configuration's order, outputs are its results in
that order.  Requests that come together are one batch where the model batches.
"""

import importlib.util
import json
import pathlib

import triton_python_backend_utils as pb_utils

try:
    import torch
except ImportError as error:
    raise RuntimeError(
        f"{error}: install the package torch from PyPI into the interpreter "
        "that runs this model, or name an EXECUTION_ENV_PATH that has it"
    ) from error


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        check_tensors(config)
        self.inputs = [i["name"] for i in config["input"]]
        self.outputs = [o["name"] for o in config["output"]]
        self.batching = config["max_batch_size"] > 0

        name = args["model_name"]
        set_threads(config, name)
        options = compile_options(config, name)
        path = find_file(config)
        model = load_script(name, path) if path.suffix != ".py" \
            else load_module(name, path)
        self.device = find_device(args, model)
        model.to(self.device).eval()
        if path.suffix == ".py":
            model = torch.compile(model, **options)
        self.model = model

    def execute(self, requests):
        with torch.inference_mode():
            if not self.batching:
                return [self.answer(self.run(self.read(r))) for r in requests]

            parts = [self.read(r) for r in requests]
            rows = [part[0].shape[0] for part in parts]
            outputs = self.run([torch.cat(t) for t in zip(*parts)])
            split = [torch.split(o, rows) for o in outputs]
            return [self.answer(part) for part in zip(*split)]

    def read(self, request):
        return [torch.from_dlpack(pb_utils.get_input_tensor_by_name(
            request, name).to_dlpack()).to(self.device)
            for name in self.inputs]

    def run(self, inputs):
        outputs = self.model(*inputs)
        if not isinstance(outputs, (tuple, list)):
            outputs = [outputs]
        if len(outputs) < len(self.outputs):
            raise pb_utils.TritonModelException(
                f"forward() gave {len(outputs)} values, the configuration has "
                f"{len(self.outputs)} outputs")
        for name, output in zip(self.outputs, outputs):
            if not isinstance(output, torch.Tensor):
                raise pb_utils.TritonModelException(
                    f"forward() gave a {type(output).__name__} for output "
                    f"'{name}', not a tensor")
        return outputs[:len(self.outputs)]

    def answer(self, tensors):
        return pb_utils.InferenceResponse([
            pb_utils.Tensor.from_dlpack(name, t.detach().cpu().contiguous())
            for name, t in zip(self.outputs, tensors)])


def check_tensors(config):
    for kind in ("input", "output"):
        if not config[kind]:
            raise pb_utils.TritonModelException(
                f"model configuration must contain at least one {kind}, none "
                "were specified: the model's file does not say what it takes "
                "and gives")
        for tensor in config[kind]:
            if tensor["data_type"] == "TYPE_STRING":
                raise pb_utils.TritonModelException(
                    f"{kind} '{tensor['name']}' is configured as TYPE_STRING, "
                    "which no tensor of PyTorch has")


def parameter(config, name, default, read):
    """The value that read gives for its text, or the default."""
    text = config.get("parameters", {}).get(name, {}).get("string_value")
    try:
        return default if text is None else read(text)
    except ValueError as error:
        raise pb_utils.TritonModelException(
            f'parameter "{name}" is "{text}": {error}') from error


def set_threads(config, model):
    text = ""
    for name in "NUM_THREADS", "NUM_INTEROP_THREADS":
        threads = parameter(config, name, 1, count)
        getattr(torch, f"set_{name.lower()}")(threads)
        text += f" {name} = {threads};"
    pb_utils.Logger.log_verbose(
        f"Torch parallelism settings for '{model}':{text}")


def count(text):
    number = int(text)
    if number < 1:
        raise ValueError("it must be at least 1")
    return number


def compile_options(config, model):
    found = parameter(config, "TORCH_COMPILE_OPTIONAL_PARAMETERS", {},
                      compile_arguments)
    pb_utils.Logger.log_verbose(
        f"'torch.compile' optional parameter(s) for '{model}': {found}")
    return found


def compile_arguments(text):
    found = json.loads(text)
    if not isinstance(found, dict) or "model" in found:
        raise ValueError('it must be a JSON object without "model"')
    return found


def find_file(config):
    directory = pathlib.Path(pb_utils.get_model_dir())
    names = ["model.py", "model.pt"]
    # the core fills in model.pt where nothing is configured
    if config.get("default_model_filename") not in (None, "", *names):
        names.insert(0, config["default_model_filename"])
    for name in names:
        if (directory / name).is_file():
            return directory / name
    raise pb_utils.TritonModelException(
        f"none of {', '.join(names)} is in {directory}")


def load_script(name, path):
    pb_utils.Logger.log_info(f"Loading '{name}' as TorchScript")
    return from_file(path, lambda: torch.jit.load(path, map_location="cpu"))


def from_file(path, load):
    """PyTorch's exceptions do not name the file."""
    try:
        return load()
    except Exception as error:
        raise pb_utils.TritonModelException(
            f"cannot load {path}: {type(error).__name__}: {error}") from error


def load_module(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    # of several the first by name, as in Triton, but those of the file before
    # those that it imports
    kinds = [k for _, k in sorted(vars(module).items()) if isinstance(k, type)
             and issubclass(k, torch.nn.Module) and k is not torch.nn.Module]
    if not kinds:
        raise pb_utils.TritonModelException(
            f"no subclass of torch.nn.Module in {path}")
    kinds.sort(key=lambda k: k.__module__ != name)
    model = kinds[0]()
    weights = path.with_suffix(".pt")
    if weights.is_file():
        from_file(weights, lambda: model.load_state_dict(
            torch.load(weights, map_location="cpu")))
    return model


def find_device(args, model):
    kind = args["model_instance_kind"]
    if kind == "GPU":
        return torch.device(f"cuda:{args['model_instance_device_id']}")
    if kind == "MODEL":
        for weights in model.parameters():
            return weights.device
    return torch.device("cpu")
