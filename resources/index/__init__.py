"""The evidence index: Parquet files derived from the packages, asked through DuckDB."""
