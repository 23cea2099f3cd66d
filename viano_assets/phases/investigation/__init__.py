"""One dispatch at a time: ask, gate, settle, reserve, look, publish."""
