"""Everything from outside, opened for one home: store, gateway, tools, configuration, evidence index.

The one place where the command line and the Dagster resource get their parts from. Plain Python: no
Dagster, and the heavy libraries load when they are first used.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resources.llm.config import LLMConfig
from resources.llm.gateway import LLMGateway, PreviewGateway
from resources.llm.providers.offline.analyst import answer as offline_answer
from resources.tools.registry import ToolBoxFactory
from viano_assets.data_files import CONFIG
from viano_assets.errors import BlockedError
from viano_assets.evaluation.stored import quoted_snapshot
from viano_assets.evidence.verify import verify_evidence
from viano_assets.package.model import Head
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.change_request.builder import ChangeRequestBuilder
from viano_assets.phases.diagnosis.builder import DiagnosisBuilder
from viano_assets.phases.diagnosis.config import DiagnosisConfig
from viano_assets.phases.drive import PHASE_ORDER, PhaseBuilder, drive, run_case
from viano_assets.phases.hypotheses.builder import HypothesisBuilder
from viano_assets.phases.hypotheses.config import HypothesisConfig
from viano_assets.phases.interpretation.builder import CaseInterpreter
from viano_assets.phases.interpretation.config import InterpretationConfig
from viano_assets.phases.investigation.builder import InvestigationBuilder
from viano_assets.phases.investigation.config import InvestigationConfig
from viano_assets.phases.protocols import ModelGateway, Phase, PhaseResult, ProgressSink
from viano_assets.phases.remedies import remedy

_LOG = logging.getLogger("viano.index")

CONFIG_VARIABLE = "VIANO_CONFIG"
"""Environment variable that names the folder of `*.local.toml` files."""


def config_folder(home: Path) -> Path:
    """Return the folder of the local settings: `VIANO_CONFIG`, else `HOME/config`, else the shipped one."""
    named = os.environ.get(CONFIG_VARIABLE)
    if named:
        return Path(named)
    own = home / "config"
    return own if own.is_dir() else CONFIG


@dataclass(frozen=True, slots=True)
class Session:
    """The opened parts of one home; `builders` holds one builder per phase."""

    home: Path
    config: Path
    store: CheckpointStore
    gateway: LLMGateway
    tools: ToolBoxFactory
    builders: Mapping[Phase, PhaseBuilder]
    progress: ProgressSink | None

    @classmethod
    def open(
        cls,
        home: Path,
        *,
        provider: str | None = None,
        planning_mode: str | None = None,
        progress: ProgressSink | None = None,
        preview: bool = False,
    ) -> Session:
        """Open the parts of `home`.

        Args:
            home: folder that holds the cases.
            provider: profile of the model; None takes the configured default.
            planning_mode: `joint` or `separate` for revisions that have not started; None takes the
                configured one.
            progress: receives live progress.
            preview: the phases end at their next model call with `EgressShown`; nothing is sent.

        Raises:
            ConfigurationError: an unknown profile or a setting that cannot be used.
        """
        folder = config_folder(home)
        store = CheckpointStore(home)
        llm = LLMConfig.load(folder / "llm.local.toml")
        gateway = LLMGateway(llm, provider, spend_folder=home / "spend")
        tools = ToolBoxFactory(home / "cache", progress)
        asked = PreviewGateway(gateway) if preview else gateway
        remote = any(link.provider.remote for link in gateway.links)
        builders = _builders(
            folder,
            store,
            asked,
            tools,
            planning_mode,
            progress,
            remote=remote,
            calibration=quoted_snapshot(home, gateway.profile),
        )
        return cls(home, folder, store, gateway, tools, builders, progress)

    async def run(
        self,
        case_id: str,
        *,
        until: Phase = Phase.CHANGE_REQUEST,
        retry_id: str | None = None,
        attempt_id: str | None = None,
    ) -> PhaseResult:
        """Drive the case through its phases up to `until`; the index follows each publication."""
        self._refuse_overlay(case_id)
        return await run_case(
            self.store,
            self.builders,
            case_id,
            until=until,
            attempt_id=attempt_id,
            retry_id=retry_id,
            progress=self.progress,
            on_phase=self._indexed,
        )

    async def run_phase(
        self,
        case_id: str,
        phase: Phase,
        *,
        retry_id: str | None = None,
        attempt_id: str | None = None,
        indexed: bool = True,
    ) -> PhaseResult:
        """Drive one phase of the case; the phases before it must have completed.

        A caller that passes `indexed=False` calls `index` itself with the last head of the case.
        """
        self._refuse_overlay(case_id)
        result = await drive(
            self.store,
            self.builders[phase],
            phase,
            case_id,
            attempt_id=attempt_id,
            retry_id=retry_id,
            progress=self.progress,
        )
        if indexed:
            self.index(result.head)
        return result

    def _refuse_overlay(self, case_id: str) -> None:
        head = self.store.latest(case_id)
        overlay = head.manifest.overlay
        if overlay is not None and overlay.kind == "blocked":
            raise BlockedError(
                overlay.code,
                f"the case is blocked in {overlay.phase}: {overlay.message}",
                where=case_id,
                hint=remedy(head),
            )

    def _indexed(self, head: Head, result: PhaseResult) -> None:
        del result
        self.index(head)

    def index(self, head: Head) -> None:
        """Replace the rows of the head's current revision in the evidence index.

        The index is derived: whatever is wrong with it is said in the log, and the case goes on.
        """
        from resources.evidence_index import EvidenceIndex  # noqa: PLC0415  # loads pyarrow when needed

        try:
            EvidenceIndex(self.home).update(self.store, head)
        except Exception as error:  # noqa: BLE001 - no analysis fails for what can be made again
            _LOG.warning(
                "the evidence index does not have the newest rows of %s (%s); viano index rebuild",
                head.case_id,
                error,
            )

    def rebuild_index(self) -> dict[str, int]:
        """Make the evidence index again from the packages and return the rows per table."""
        from resources.evidence_index import EvidenceIndex  # noqa: PLC0415  # loads pyarrow when needed

        return EvidenceIndex(self.home).rebuild(self.store)

    def verify(self, case_id: str, *, audit_history: bool = False) -> dict[str, Any]:
        """Check the package, every pointer and every stored piece of evidence of the case.

        Returns `{case_id, generation, checked: {artifacts, evidence}, problems: [{code, message, where}]}`.
        """
        audit = self.store.verify(case_id, audit_history=audit_history)
        problems = [p._asdict() for p in audit.problems]
        head = self.store.latest(case_id)
        count = 0
        if head.pointer("evidence") is not None:
            from viano_assets.phases.diagnosis.view import evidence_records  # noqa: PLC0415

            count = len(evidence_records(self.store, head, head.revision))
            broken = verify_evidence(self.store, head, self.tools.open(self.store, head))
            problems += [
                {"code": "evidence_broken", "message": item.reason, "where": item.evidence_id}
                for item in broken
            ]
        return {
            "case_id": case_id,
            "generation": head.generation,
            "checked": {"artifacts": len(head.files), "evidence": count},
            "problems": problems,
        }


def _builders(
    folder: Path,
    store: CheckpointStore,
    gateway: ModelGateway,
    tools: ToolBoxFactory,
    planning_mode: str | None,
    progress: ProgressSink | None,
    *,
    remote: bool,
    calibration: Mapping[str, Any] | None,
) -> Mapping[Phase, PhaseBuilder]:
    interpretation = InterpretationConfig.load(folder / "analysis.local.toml")
    if planning_mode is not None:
        planning = interpretation.planning.model_copy(update={"mode": planning_mode})
        interpretation = interpretation.model_copy(update={"planning": planning})
    hypotheses = HypothesisConfig.load(folder / "analysis.local.toml")
    investigation = InvestigationConfig.load(folder / "investigation.local.toml")
    diagnosis = DiagnosisConfig.load(folder / "diagnosis.local.toml")
    analyst: Callable[..., Mapping[str, Any]] | None = offline_answer if remote else None
    made: dict[Phase, PhaseBuilder] = {
        Phase.INTERPRETATION: CaseInterpreter(store, gateway, interpretation),
        Phase.HYPOTHESES: HypothesisBuilder(store, gateway, hypotheses),
        Phase.INVESTIGATION: InvestigationBuilder(store, gateway, investigation, tools, progress=progress),
        Phase.DIAGNOSIS: DiagnosisBuilder(
            store,
            gateway,
            diagnosis,
            tools=tools,
            analyst=analyst,
            calibration=calibration,
        ),
        Phase.CHANGE_REQUEST: ChangeRequestBuilder(store),
    }
    return {phase: made[phase] for phase in PHASE_ORDER}
