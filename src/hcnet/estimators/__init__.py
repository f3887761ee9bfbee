"""The scikit-learn classes: validate, call, store."""
