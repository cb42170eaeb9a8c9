"""The configuration that a model's auto_complete_config completes."""

import json

_INPUT = ("name", "data_type", "dims", "optional")
_OUTPUT = ("name", "data_type", "dims")


class ModelConfig:
    """A model's configuration; as_dict() is the live document."""

    def __init__(self, model_config):
        self._model_config = json.loads(model_config)

    def as_dict(self):
        return self._model_config

    def set_max_batch_size(self, max_batch_size):
        """Sets it; ValueError if the configuration's is larger."""
        present = self._model_config.get("max_batch_size", 0)
        if present > max_batch_size:
            raise ValueError(
                f"configuration specified max_batch_size {present}, but in "
                f"auto-complete-config function for model '{self._name()}' "
                f"specified max_batch_size {max_batch_size}")
        self._model_config["max_batch_size"] = max_batch_size

    def set_dynamic_batching(self):
        """Sets it; ValueError if the configuration has another scheduler."""
        for scheduler in ("sequence_batching", "ensemble_scheduling"):
            if scheduler in self._model_config:
                raise ValueError(
                    f"Configuration specified scheduling_choice as "
                    f"'{scheduler}', but auto-complete-config function for "
                    f"model '{self._name()}' tries to set scheduling_choice "
                    "as 'dynamic_batching'")
        self._model_config.setdefault("dynamic_batching", {})

    def add_input(self, input):     # pylint: disable=redefined-builtin
        """A dict of name, data_type, dims and, if there is one, optional."""
        self._add("input", _INPUT, input)

    def add_output(self, output):
        """A dict of name, data_type and dims."""
        self._add("output", _OUTPUT, output)

    def set_model_transaction_policy(self, transaction_policy_dict):
        """{"decoupled": bool}; ValueError where the configuration says
        otherwise."""
        if any(key != "decoupled" for key in transaction_policy_dict):
            raise ValueError(
                "model transaction property in auto-complete-config function "
                f"for model '{self._name()}' contains property other than "
                "'decoupled'.")
        policy = self._model_config.setdefault("model_transaction_policy", {})
        if "decoupled" not in transaction_policy_dict:
            return
        decoupled = transaction_policy_dict["decoupled"]
        if policy.get("decoupled", decoupled) != decoupled:
            raise ValueError(
                "trying to change decoupled property in auto-complete-config "
                f"for model '{self._name()}', which is already set to "
                f"'{policy['decoupled']}'.")
        policy["decoupled"] = decoupled

    # ---- inputs and outputs

    def _name(self):
        return self._model_config.get("name", "")

    def _add(self, kind, allowed, tensor):
        """Completes an entry of that name without datatype or dims."""
        self._check_members(kind, allowed, tensor)
        entries = self._model_config.setdefault(kind, [])
        for entry in entries:
            if entry["name"] == tensor["name"]:
                self._check_agrees(kind, entry, tensor)
                entry.update(tensor)
                return
        entries.append(tensor)

    def _check_members(self, kind, allowed, tensor):
        called = f"{kind} '{tensor['name']}'" if "name" in tensor else kind
        where = f"{called} in auto-complete-config function for model " \
            f"'{self._name()}'"
        if any(key not in allowed for key in tensor):
            listed = ", ".join(f"'{key}'" for key in allowed[:-1])
            raise ValueError(f"{where} contains property other than {listed} "
                             f"and '{allowed[-1]}'.")
        for key in ("name", "data_type", "dims"):
            if key not in tensor:
                raise ValueError(f"{where} is missing '{key}' property.")

    def _check_agrees(self, kind, entry, tensor):
        present = entry.get("data_type", "TYPE_INVALID")
        if present not in ("TYPE_INVALID", tensor["data_type"]):
            raise ValueError(
                f"unable to load model '{self._name()}', configuration "
                f"expects datatype {present} for {kind} '{tensor['name']}', "
                f"model provides {tensor['data_type']}")
        where = f"model '{self._name()}', tensor '{tensor['name']}': the " \
            "model expects "
        if entry.get("dims") and entry["dims"] != tensor["dims"]:
            raise ValueError(
                f"{where}dims {tensor['dims']} but the model configuration "
                f"specifies dims {entry['dims']}")
        if "optional" in tensor and entry.get(
                "optional", tensor["optional"]) != tensor["optional"]:
            raise ValueError(
                f"{where}optional {tensor['optional']} but the model "
                f"configuration specifies optional {entry['optional']}")
