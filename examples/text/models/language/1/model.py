"""Says in which language a text is written, and how sure that is.

weights.npz (../../../train.py makes it): languages, a matrix of places by
languages, a bias for each language, and the length of the longest run.
"""

import os

import numpy as np
import triton_python_backend_utils as pb_utils

from . import tokens


class TritonPythonModel:
    def initialize(self, args):
        with np.load(os.path.join(pb_utils.get_model_dir(),
                                  "weights.npz")) as file:
            self.languages = np.array(
                [name.encode() for name in file["languages"]], object)
            self.weights = file["weights"].astype(np.float32)
            self.bias = file["bias"].astype(np.float32)
            self.longest = int(file["longest"])

    def execute(self, requests):
        """All texts of a batch are one multiplication."""
        texts = [pb_utils.get_input_tensor_by_name(r, "TEXT").as_numpy()
                 for r in requests]
        scores = self.scores([t.decode("utf-8", "replace")
                              for part in texts for t in part.ravel()])
        answers, at = [], 0
        for part in texts:
            mine = scores[at:at + part.size]
            at += part.size
            best = mine.argmax(axis=1)
            answers.append(pb_utils.InferenceResponse([
                pb_utils.Tensor("LANGUAGE",
                                self.languages[best].reshape(part.shape)),
                pb_utils.Tensor("SCORE",
                                mine.max(axis=1).reshape(part.shape))]))
        return answers

    def scores(self, texts):
        """A row for each text: the probability of each language."""
        given = np.array([tokens.vector(t, len(self.weights), self.longest)
                          for t in texts], np.float32).reshape(
                              len(texts), len(self.weights))
        power = given @ self.weights + self.bias
        power = np.exp(power - power.max(axis=1, keepdims=True))
        return power / power.sum(axis=1, keepdims=True)
