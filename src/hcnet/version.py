"""The version of hcnet."""

__version__ = "0.1.0"
