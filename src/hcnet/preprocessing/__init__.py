"""From grey images to the binary channels that networks learn from."""

from hcnet.preprocessing.edges import OrientedEdges
from hcnet.preprocessing.lines import LineRemover

__all__ = ["LineRemover", "OrientedEdges"]
