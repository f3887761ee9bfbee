"""The CUDA engine: the factor functions compiled for an NVIDIA GPU, everything in its memory."""
