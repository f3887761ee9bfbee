"""From grey images to the binary channels that networks learn from."""

from hcnet.preprocessing.edges import OrientedEdges

__all__ = ["OrientedEdges"]
