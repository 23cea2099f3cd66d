"""Viano: where and why a reported bug breaks, with evidence that can be checked."""

__version__ = "0.1.0"
