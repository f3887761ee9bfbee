"""What the paper compares with, and what users would pick instead."""
