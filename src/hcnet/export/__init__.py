"""Learned models for other programs: ONNX graphs, and dictionaries that JSON can hold."""
