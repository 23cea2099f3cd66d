"""The canonical case: report readers, intake, redacted view of the inputs, lifecycle, freshness."""
