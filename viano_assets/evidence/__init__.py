"""Evidence records: what a tool found, where exactly, and how complete the look was."""
