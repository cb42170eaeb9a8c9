"""Tensors of requests and responses, and entries of a configuration, by
name."""


def _named(tensors, name):
    for tensor in tensors:
        if tensor.name() == name:
            return tensor
    return None


def _entry(model_config, kind, name):
    for entry in model_config.get(kind, ()):
        if entry["name"] == name:
            return entry
    return None


def get_input_tensor_by_name(inference_request, name):
    """The request's input of that name, or None."""
    return _named(inference_request.inputs(), name)


def get_output_tensor_by_name(inference_response, name):
    """The response's output of that name, or None."""
    return _named(inference_response.output_tensors(), name)


def get_input_config_by_name(model_config, name):
    """The entry of "input" in a configuration (a dict), or None."""
    return _entry(model_config, "input", name)


def get_output_config_by_name(model_config, name):
    """The entry of "output" in a configuration (a dict), or None."""
    return _entry(model_config, "output", name)


def using_decoupled_model_transaction_policy(model_config):
    """Whether the configuration (a dict) says that the model is decoupled."""
    policy = model_config.get("model_transaction_policy", {})
    return policy.get("decoupled", False)
