"""The commands of ``hcnet``: each reads its arguments, calls the library, and says what it did."""
