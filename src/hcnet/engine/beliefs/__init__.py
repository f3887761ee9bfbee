"""Message passing that stores messages only where there is ink."""
