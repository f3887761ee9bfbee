"""What the file of an `HCN` holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hcnet.archive.kinds import LARGEST_SIDE
from hcnet.archive.nodes import Node
from hcnet.estimators.base import Estimator
from hcnet.hierarchy.model import NetworkModel
from hcnet.hierarchy.specification import Layer
from hcnet.online.network_stream import NetworkStream
from hcnet.validation.network import check_layers, check_noise
from hcnet.validation.parameters import (
    check_choice,
    check_needed,
    check_random_state,
)

ALGORITHM_NAMES = ("mpmp", "bottom-up")
# Passes of a model file: one that asks for more is meant to keep its reader busy.
MOST_PASSES = 1000


class NetworkSaving(Estimator):
    """The part of `HCN` that goes into files and comes out of them."""

    _model_type = NetworkModel
    _model: NetworkModel
    _stream: NetworkStream | None

    if TYPE_CHECKING:  # of the estimator

        def __getattr__(self, name: str) -> Any: ...

    def _read_stream(self, file: Node) -> None:
        network, classes = self._model.network, self._model.classes
        if len(self.layers) != len(network.levels):
            raise ValueError("its layers are not those of its stream")
        options = self._options(tuple(layer.damping for layer in self.layers))
        self._stream = NetworkStream.read(file, network, classes, options)
        self._stream.made_for = self._structure()

    @classmethod
    def _parameter(cls, name: str, node: Node) -> Any:
        if name != "layers":
            return super()._parameter(name, node)
        return [
            Layer(**{key: Estimator._parameter(key, about[key]) for key in about.names()})
            for about in node.items()
        ]

    def _check_parameters(self) -> None:
        per_class = check_needed("templates_per_class", self.templates_per_class)
        self._n_classes()
        # Whether the layers fit on an image is known only with the next one.
        check_layers(
            self.layers, self.layers[-1].n_features or per_class, (LARGEST_SIDE, LARGEST_SIDE)
        )
        check_noise(self.p01, self.p10)
        check_choice("algorithm", self.algorithm, ALGORITHM_NAMES)
        if self._method().n_passes > MOST_PASSES:
            raise ValueError(
                f"n_passes must be at most {MOST_PASSES} in a model that is saved, got "
                f"{self.n_passes}; set it when it is loaded."
            )
        self._options(())
        check_random_state(self.random_state)
