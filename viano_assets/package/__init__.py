"""The durable case package: generations, objects, checkpoints, transfer and audit."""
