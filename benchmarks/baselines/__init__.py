"""What the paper compares with, and what users would pick instead; not part of the library."""
