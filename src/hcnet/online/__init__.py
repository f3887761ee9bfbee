"""Online learning: minibatch after minibatch, in memory that does not grow."""
