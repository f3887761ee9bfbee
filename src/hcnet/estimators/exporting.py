"""Learned models for other programs: the half of an estimator that exports."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sklearn.utils.validation import check_is_fitted

from hcnet.archive.nodes import Node
from hcnet.export import structure
from hcnet.export.network import network_graph
from hcnet.export.parts import parts_graph
from hcnet.hierarchy.model import NetworkModel
from hcnet.model import PartsModel


class PartsExport:
    """How `FeatureLearner` leaves Python."""

    if TYPE_CHECKING:  # of the estimator
        _model: PartsModel

        @classmethod
        def _from_model(cls, parameters: Node, model: Node) -> Self: ...

        def _plain_parameters(self) -> dict[str, Any]: ...

        def _publish(self, model: PartsModel) -> Self: ...

    def to_onnx(self, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Write the parts as an ONNX graph: a convolution with binary weights.

        Input "X" (images, channels, height, width), float32: 0, 1, NaN where a pixel is missing; of
        any size.  Output "scores" (images, features, rows, columns): how much a part at a position
        would explain, in nats, if it stood there alone, less what a placement costs.  Positions are
        those of `placements_`, counted from the first that a window can take.  `transform` goes on
        from there: it decides which placements explain the image together.
        """
        check_is_fitted(self)
        if not len(self._model.features):
            raise ValueError(
                "There are no parts to export: none was found that shortens the description of "
                "the images; learn from others, or with another feature_size."
            )
        return parts_graph(self._model).save(path, overwrite)

    def to_dict(self) -> dict[str, Any]:
        """Everything that was learned as a dictionary that JSON can hold; `from_dict` reads it.

        Parts are rows of "#" and ".".  The state of a stream is not in it: `save` keeps that.
        """
        check_is_fitted(self)
        return structure.to_dict(self._model.contents(), structure.PARTS, self._plain_parameters())

    @classmethod
    def from_dict(cls, description: dict[str, Any]) -> Self:
        """The learner that `to_dict` described."""
        return structure.from_dict(description, structure.PARTS, cls._described)

    @classmethod
    def _described(cls, written: Node) -> Self:
        return cls._from_model(written["parameters"], written)


class NetworkExport:
    """How `HCN` leaves Python."""

    if TYPE_CHECKING:  # of the estimator
        _model: NetworkModel

        @classmethod
        def _from_model(cls, parameters: Node, model: Node) -> Self: ...

        def _plain_parameters(self) -> dict[str, Any]: ...

        def _publish(self, model: NetworkModel) -> Self: ...

    def to_onnx(self, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Write the fast forward pass as an ONNX graph: a CNN with binary weights.

        Input "X" (images, channels, height, width), float32: 0, 1, NaN where a pixel is missing; of
        the network's size.  Outputs "label" (images,), "scores" and "probabilities" (images,
        classes): what `predict` and `predict_proba` say with ``inference="forward"``, up to the
        rounding of float32.  Names of classes that are of several types become strings.
        """
        check_is_fitted(self)
        if self._model.network.classes.p_on is not None:
            raise ValueError(
                "to_onnx needs exactly one object per image, and this class layer allows several, "
                "which a forward pass alone cannot tell apart; export the network without p_on: "
                "with_class_layer().to_onnx(…)."
            )
        return network_graph(self._model).save(path, overwrite)

    def to_dict(self) -> dict[str, Any]:
        """Everything that was learned as a dictionary that JSON can hold; `from_dict` reads it.

        Weights are rows of "#" and ".".  The state of a stream is not in it: `save` keeps that.
        """
        check_is_fitted(self)
        return structure.to_dict(
            self._model.contents(), structure.NETWORK, self._plain_parameters()
        )

    @classmethod
    def from_dict(cls, description: dict[str, Any]) -> Self:
        """The network that `to_dict` described."""
        return structure.from_dict(description, structure.NETWORK, cls._described)

    @classmethod
    def _described(cls, written: Node) -> Self:
        return cls._from_model(written["parameters"], written)
