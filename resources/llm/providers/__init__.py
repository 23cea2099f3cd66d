"""One adapter per provider wire format, and the offline analyst."""
