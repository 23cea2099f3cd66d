"""The gateway's view of the package's one clock seam: due times with milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime

from viano_assets.package.clock import Clock, SystemClock

__all__ = ["Clock", "SystemClock", "iso", "parse_iso"]


def iso(moment: datetime) -> str:
    """Return `moment` as ISO 8601 in UTC with milliseconds and Z."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_iso(text: str) -> datetime:
    """Return the moment that `iso` wrote."""
    return datetime.fromisoformat(text).astimezone(UTC)
