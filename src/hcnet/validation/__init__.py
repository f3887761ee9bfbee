"""Every check on what users pass; nothing below this package checks again."""
