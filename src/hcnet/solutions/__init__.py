"""Discrete solutions: features, placements, what they cost, and their local improvement."""
