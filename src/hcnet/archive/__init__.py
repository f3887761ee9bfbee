"""Files: a zip archive of NumPy arrays and a JSON header, checksummed, no pickle: docs/files.md."""
