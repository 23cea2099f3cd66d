"""The Dagster resource around `resources.session`: where the home is and which provider decides.

The plain core lives in `resources.session`; this wrapper only holds configuration, so that no secret and
no open file ever becomes part of a Dagster object.
"""

from __future__ import annotations

from pathlib import Path

import dagster as dg
from pydantic import Field

from resources.session import Session
from viano_assets.phases.protocols import ProgressSink


class VianoResource(dg.ConfigurableResource["VianoResource"]):
    """Opens sessions on one Viano home."""

    home: str = Field(description="Folder that holds the cases.")
    provider: str | None = Field(
        default=None, description="Provider profile; the configured default if null."
    )

    def session(self, *, provider: str | None = None, progress: ProgressSink | None = None) -> Session:
        """Open a session; `provider` overrides the configured profile."""
        return Session.open(Path(self.home), provider=provider or self.provider, progress=progress)
