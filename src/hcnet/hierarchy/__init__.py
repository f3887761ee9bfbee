"""The multi-layer network: what it is, passing messages through it, learning, using it."""
