"""Lossless files of binary pages."""
