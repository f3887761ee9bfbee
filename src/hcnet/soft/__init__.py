"""Parts that repeat approximately: soft parts, their noisy channel, and the search for them."""
