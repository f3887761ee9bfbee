"""The active set on a GPU."""
