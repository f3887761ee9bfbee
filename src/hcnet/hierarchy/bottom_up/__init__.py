"""Learning a network layer by layer from the image upwards, by a discrete search."""
