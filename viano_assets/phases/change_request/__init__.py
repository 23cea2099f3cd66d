"""What has to change, built by policy from a confirmed diagnosis."""
