"""Message passing that stores and updates only what is undecided."""
