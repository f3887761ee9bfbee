"""Functions that draw the pictures of the documentation."""
