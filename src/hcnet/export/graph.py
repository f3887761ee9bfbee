"""Builds an ONNX graph and writes it to a file."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcnet.atomic_files import write_atomically

# The oldest set of operators that is sufficient, so that old runtimes can read it.
OPSET = 17
IR_VERSION = 8


def require_onnx() -> Any:
    """The package `onnx`, which is an extra."""
    try:
        return import_module("onnx")
    except ImportError:
        raise ImportError(
            "to_onnx needs the package onnx, which is not installed; install it with "
            "pip install onnx, or hcnet with its extra: pip install 'hcnet[onnx]'."
        ) from None


class Graph:
    """A graph under construction; every method returns the name of the tensor that it adds.

    `shape` is that of the input "X", a name where a length is open.
    """

    def __init__(self, shape: tuple[int | str, ...], about: str) -> None:
        self._onnx = require_onnx()
        self._about = about
        self._nodes: list[Any] = []
        self._constants: dict[str, NDArray[Any]] = {}
        self._outputs: list[Any] = []
        float32 = self._onnx.TensorProto.FLOAT
        self._input = self._onnx.helper.make_tensor_value_info("X", float32, shape)

    def constant(self, name: str, value: NDArray[Any]) -> str:
        """A tensor that is part of the graph."""
        self._constants[name] = value
        return name

    def number(self, name: str, value: float) -> str:
        """A single number that is part of the graph."""
        return self.constant(name, np.array(value, np.float32))

    def add(self, operator: str, inputs: list[str], name: str, **attributes: Any) -> str:
        """An operator with one result, called `name`."""
        node = self._onnx.helper.make_node(operator, inputs, [name], name=name, **attributes)
        self._nodes.append(node)
        return name

    def output(self, name: str, dtype: np.dtype[Any], shape: tuple[int | str, ...]) -> None:
        """Make the tensor of this name an output."""
        kind = self._onnx.helper.np_dtype_to_tensor_dtype(dtype)
        self._outputs.append(self._onnx.helper.make_tensor_value_info(name, kind, shape))

    def evidence(self, k1: float, k0: float) -> str:
        """The evidence of X: k1 where a pixel is on, k0 where it is off, 0 where it is NaN."""
        on = self.number("k1", k1)
        off = self.number("k0", k0)
        half = self.number("half", 0.5)
        zero = self.number("zero", 0.0)
        missing = self.add("IsNaN", ["X"], "missing")
        lit = self.add("Greater", ["X", half], "on")
        seen = self.add("Where", [lit, on, off], "seen")
        return self.add("Where", [missing, zero, seen], "evidence")

    def model(self) -> Any:
        """The finished model, checked by onnx."""
        onnx = self._onnx
        tensors = [
            onnx.numpy_helper.from_array(value, name) for name, value in self._constants.items()
        ]
        graph = onnx.helper.make_graph(
            self._nodes, "hcnet", [self._input], self._outputs, tensors, doc_string=self._about
        )
        model = onnx.helper.make_model(
            graph,
            producer_name="hcnet",
            doc_string=self._about,
            opset_imports=[onnx.helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
        )
        onnx.checker.check_model(model, full_check=True)
        return model

    def save(self, path: str | os.PathLike[str], overwrite: bool) -> Path:
        """Write the model to a file, as a whole or not at all."""
        data: bytes = self.model().SerializeToString()
        return write_atomically(path, lambda file: file.write(data), overwrite)
