"""Asks the small model first, and the large one for those texts that the small
one is not sure of (below the parameter `threshold`)."""

import asyncio
import json

import numpy as np
import triton_python_backend_utils as pb_utils

SMALL, LARGE = "language_small", "language"
NAMES = ["LANGUAGE", "SCORE"]


class TritonPythonModel:
    def initialize(self, args):
        parameters = json.loads(args["model_config"])["parameters"]
        self.threshold = float(parameters["threshold"]["string_value"])

    async def execute(self, requests):
        return list(await asyncio.gather(
            *[self.route(r) for r in requests]))

    async def route(self, request):
        texts = pb_utils.get_input_tensor_by_name(request, "TEXT").as_numpy()
        try:
            languages, scores = await self.ask(SMALL, texts)
            models = np.full(texts.shape, SMALL.encode(), object)
            unsure = (scores < self.threshold).ravel()
            if unsure.any():
                languages[unsure], scores[unsure] = await self.ask(
                    LARGE, texts[unsure])
                models[unsure] = LARGE.encode()
        except pb_utils.TritonModelException as e:
            return pb_utils.InferenceResponse(
                error=pb_utils.TritonError(str(e)))
        return pb_utils.InferenceResponse([
            pb_utils.Tensor("LANGUAGE", languages),
            pb_utils.Tensor("SCORE", scores),
            pb_utils.Tensor("MODEL", models)])

    async def ask(self, model, texts):
        """Languages and scores of the texts, arrays of the same shape."""
        response = await pb_utils.InferenceRequest(
            model_name=model, requested_output_names=NAMES,
            inputs=[pb_utils.Tensor("TEXT", texts)]).async_exec()
        if response.has_error():
            raise pb_utils.TritonModelException(
                f"{model}: {response.error().message()}")
        return [np.array(pb_utils.get_output_tensor_by_name(
            response, name).as_numpy()) for name in NAMES]
