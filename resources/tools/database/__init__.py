"""The shipped tables: loading snapshots into one DuckDB file and asking it, read-only."""
