"""Refinement: moves on the joint probability, kept only if they improve it (ours, not the paper's)."""
