"""Fitted estimators for other programs: ONNX graphs, and dictionaries that JSON can hold."""

from hcnet.export.dictionaries import from_dict, to_dict
from hcnet.export.onnx_files import to_onnx

__all__ = ["from_dict", "to_dict", "to_onnx"]
