"""Message passing on an NVIDIA GPU, with all arrays in its memory."""
