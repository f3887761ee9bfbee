"""Message passing that stores only messages that are not zero."""
