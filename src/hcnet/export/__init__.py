"""Fitted estimators for other programs: ONNX graphs, and dictionaries that JSON can hold."""

from hcnet.export.formats import from_dict, to_dict, to_onnx

__all__ = ["from_dict", "to_dict", "to_onnx"]
