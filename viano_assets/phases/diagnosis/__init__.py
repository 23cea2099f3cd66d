"""The final evaluation under deterministic gates."""
