"""Refinement: moves that are kept if they improve the joint probability (not in the paper)."""
