"""Joint planning v2: interpretation and hypotheses in one call, repaired locally."""
