"""Read-only tools over the redacted inputs of one case."""
