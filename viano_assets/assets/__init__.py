"""Thin Dagster assets around the phase builders."""
