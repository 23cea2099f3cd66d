"""The `viano` command, one module per command group."""
