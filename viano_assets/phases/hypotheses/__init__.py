"""Competing mechanisms, registered once, with a pinned policy and budget."""
