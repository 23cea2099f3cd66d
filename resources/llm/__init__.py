"""The model gateway and its providers."""
