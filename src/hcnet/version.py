"""The version of the library, where everything that needs it can reach it."""

VERSION = "0.1.0"
