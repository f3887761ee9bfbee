"""Learning: message passing (the paper's algorithm), refinement, restarts."""
