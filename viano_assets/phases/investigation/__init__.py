"""The investigation: one bounded dispatch after another over read-only tools, under a strict budget."""
