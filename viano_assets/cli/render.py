"""Case views for a person at a terminal. Everything from a case is text, never markup or escapes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from viano_assets.cli.options import counted
from viano_assets.errors import StorageError
from viano_assets.evaluation.stored import write_bytes
from viano_assets.package.model import Head
from viano_assets.phases.common import artifact_path, read_json
from viano_assets.phases.diagnosis.places import heading, view_places
from viano_assets.phases.diagnosis.summary import limits_shown, location_text
from viano_assets.phases.diagnosis.wording import Wording
from viano_assets.phases.protocols import Phase, Store

EXCERPT_LINES = 12
EXCERPT_COLUMNS = 160
PIPED_COLUMNS = 110
"""Width when no terminal says its own."""

SHOWN_IDS = 4
SHOWN_RECORDS = 3
"""Records quoted per explanation beside those of the cause."""


def _console() -> Console:
    console = Console(highlight=False, soft_wrap=False)
    if not console.is_terminal:
        console.width = PIPED_COLUMNS
    return console


def _clean(text: object) -> str:
    return "\n".join(one_line_keep_indent(line) for line in str(text).splitlines())


def one_line_keep_indent(line: str) -> str:
    """Return a line with its indentation and without control characters."""
    return "".join(
        c if c.isprintable() else (" " if c == "\t" else "\N{REPLACEMENT CHARACTER}") for c in line
    )


def _heading(console: Console, text: str) -> None:
    console.print()
    console.print(Text(text, style="bold underline"))


def _prose(console: Console, text: object, *, lead: str = "", style: str = "") -> None:
    """Print a text wrapped at words, without blanks at the line ends; later lines stand under the first."""
    blank = " " * len(lead)
    _wrapped(console, Text(_clean(text), style=style), lead, blank)


def _wrapped(console: Console, text: Text, lead: str = "", blank: str = "") -> None:
    start = lead
    for line in text.wrap(console, max(console.width - len(lead), 20)):
        line.rstrip()
        console.print(Text(start).append_text(line), soft_wrap=True)
        start = blank


def _lines(console: Console, text: str) -> None:
    """Print lines as they are indented, wrapped under their own indentation."""
    for line in text.splitlines():
        body = line.lstrip(" ")
        _prose(console, body, lead=" " * (len(line) - len(body)))


def _bullets(console: Console, items: Sequence[object]) -> None:
    for item in items:
        _prose(console, item, lead="  • ")


STATES: Mapping[str, str] = {
    "RECEIVED": "received",
    "ASSEMBLED": "imported, not run",
    "INTERPRETING": "in interpretation",
    "GENERATING_HYPOTHESES": "in hypotheses",
    "INVESTIGATING_HYPOTHESES": "in investigation",
    "BUILDING_DIAGNOSIS": "in diagnosis",
    "BUILDING_CHANGE_REQUEST": "in change request",
    "INTERPRETED": "interpreted",
    "HYPOTHESES_GENERATED": "hypotheses made",
    "INVESTIGATED": "investigated",
    "DIAGNOSED": "cause confirmed",
    "OUTPUT_READY": "finished",
    "FAILED_TO_ANALYZE": "inconclusive",
    "DAMAGED": "damaged",
}
"""What a state or stage is called for people. An inconclusive end is a result, no failure."""


def state_words(state: str, overlay: str | None = None) -> str:
    """Return a lifecycle state in words, a halt that lies over it first."""
    words = STATES.get(state, state.replace("_", " ").lower())
    return f"{overlay}, {words}" if overlay else words


def print_case(view: Mapping[str, Any], *, home: Path, report_file: Path | None = None) -> None:
    """Print a case view: verdict first, then place, evidence, alternatives, limits, spend, where to look."""
    console = _console()
    console.print()
    title = Text(f"{view['case_id']}  revision {view['analysis_revision']}", style="bold")
    overlay = view.get("overlay")
    title.append(
        f"   {state_words(view.get('stage') or view['state'], overlay['kind'] if overlay else None)}",
        style="cyan",
    )
    title.append(f"   {view['state']}", style="dim")
    console.print(title)
    if view.get("interrupted"):
        _prose(console, view["interrupted"], style="yellow")
    if overlay:
        _prose(console, f"{overlay['kind']}: {overlay['message']} ({overlay['code']})", style="yellow")
    _diagnosis(console, view)
    _localisation(console, view)
    _evidence(console, view)
    _hypotheses(console, view.get("hypotheses") or [])
    if view.get("not_examined"):
        _heading(console, "Not examined")
        _bullets(console, _folded(limits_shown(view["not_examined"], view.get("hypotheses") or [])))
    _spend(console, view.get("spend") or {})
    _where_next(console, view, home, report_file)


def _folded(items: Sequence[str]) -> list[str]:
    """Return the limits with the tools nobody asked folded into one line at the end."""
    kept = list(items)
    for language, lead in (("en", "tools never asked"), ("de", "nie gefragt")):
        suffix = Wording(language)("{tool} was never asked", tool="")
        unasked = [item.removesuffix(suffix) for item in kept if item.endswith(suffix)]
        kept = [item for item in kept if not item.endswith(suffix)]
        kept += [f"{lead}: {', '.join(unasked)}"] if unasked else []
    return kept


def _diagnosis(console: Console, view: Mapping[str, Any]) -> None:
    diagnosis = view.get("diagnosis")
    if not diagnosis:
        return
    confirmed = diagnosis["status"] == "confirmed"
    _heading(console, "Diagnosis")
    verdict = Text(
        "confirmed" if confirmed else "inconclusive", style="bold green" if confirmed else "bold yellow"
    )
    if diagnosis.get("inconclusive_kind"):
        verdict.append(f" ({diagnosis['inconclusive_kind'].replace('_', ' ')})")
    verdict.append(f"   confidence {diagnosis['confidence'].replace('_', ' ')}", style="default")
    requested = diagnosis.get("requested_confidence")
    if requested and requested != diagnosis["confidence"]:
        verdict.append(f" (requested {requested.replace('_', ' ')})", style="dim")
    console.print(verdict)
    cause = diagnosis.get("root_cause")
    if cause:
        _prose(console, cause["summary"])
        _prose(console, cause["technical_description"])
    if diagnosis.get("final_reason"):
        _prose(console, diagnosis["final_reason"])
    if view.get("deciding_question"):
        _heading(console, "The question that would decide it")
        _prose(console, view["deciding_question"])
    for title, key in (
        ("What remains uncertain", "remaining_uncertainty"),
        ("What a person should do next", "review_actions"),
    ):
        if diagnosis.get(key):
            _heading(console, title)
            _bullets(console, diagnosis[key])


def _resting_on(view: Mapping[str, Any], item: Mapping[str, Any]) -> list[str]:
    """Return the cited records that stand at a place; of a file all that localisation counts to it."""
    if item.get("evidence_ids"):
        return list(item["evidence_ids"])
    return [r["evidence_id"] for r in view.get("evidence") or [] if r["cited"] and _at(r, item)]


def _at(record: Mapping[str, Any], item: Mapping[str, Any]) -> bool:
    if item.get("table"):
        return bool(record["table"] == item["table"] and record["key"] == item.get("key"))
    start, end = item.get("line_start"), item.get("line_end")
    if record["path"] != item["path"] or record["line_start"] is None or start is None:
        return False
    return bool(
        record["line_start"] <= (end or start) and start <= (record["line_end"] or record["line_start"])
    )


def _localisation(console: Console, view: Mapping[str, Any]) -> None:
    places = view_places(view)
    if not places:
        return
    _heading(console, heading(confirmed=(view.get("diagnosis") or {}).get("status") == "confirmed"))
    table = Table(box=None, show_header=True, pad_edge=False, header_style="dim")
    for name in ("kind", "place", "basis", "evidence"):
        table.add_column(name, overflow="fold")
    for kind, item in places:
        table.add_row(
            Text(kind),
            Text(_clean(location_text(item))),
            Text(item["basis"]),
            Text(_ids(_resting_on(view, item))),
        )
    _print_table(console, table)


def _print_table(console: Console, table: Table) -> None:
    """Print a table without blanks at the line ends."""
    for line in console.render_lines(table, pad=False):
        row = Text.assemble(*((segment.text, segment.style or "") for segment in line))
        row.rstrip()
        console.print(row, soft_wrap=True)


def _ids(identifiers: Sequence[str]) -> str:
    """Return the first ids and how many there are besides."""
    more = f" +{len(identifiers) - SHOWN_IDS}" if len(identifiers) > SHOWN_IDS else ""
    return " ".join(identifiers[:SHOWN_IDS]) + more


class _Quoted(NamedTuple):
    """A record to quote and what it is quoted for."""

    record: Mapping[str, Any]
    role: str


def _cited(view: Mapping[str, Any]) -> list[_Quoted]:
    """Return the records of the cause (else of each explanation's support), then some against others."""
    diagnosis = view.get("diagnosis") or {}
    hypotheses = view.get("hypotheses") or []
    roles = dict.fromkeys((diagnosis.get("root_cause") or {}).get("evidence_ids") or [], "shows the cause")
    if not roles:
        for hypothesis in hypotheses:
            for identifier in (hypothesis.get("support") or [])[:SHOWN_RECORDS]:
                roles.setdefault(identifier, f"for {hypothesis['id']}")
    against = [(i, h["id"]) for h in hypotheses for i in (h.get("against") or [])[:1] if i not in roles]
    for identifier, name in against[:SHOWN_RECORDS]:
        roles.setdefault(identifier, f"against {name}")
    records = {record["evidence_id"]: record for record in view.get("evidence") or []}
    return [_Quoted(records[identifier], role) for identifier, role in roles.items() if identifier in records]


def _evidence(console: Console, view: Mapping[str, Any]) -> None:
    quoted = _cited(view)
    if not quoted:
        return
    _heading(console, "Evidence, quoted from the inputs")
    for record, role in quoted:
        head = Text(f"{record['evidence_id']}  ", style="bold")
        head.append(_clean(location_text(record)) or record["tool"])
        head.append(f"   {role}", style="cyan")
        head.append(f"   {record['completeness']}, {record['tool']}", style="dim")
        console.print(head, soft_wrap=True)
        lines = str(record["excerpt"]).splitlines()
        shown = lines[:EXCERPT_LINES]
        for line in shown:
            cut = line[: EXCERPT_COLUMNS - 1] + "…" if len(line) > EXCERPT_COLUMNS else line
            console.print(Text(("  │ " + one_line_keep_indent(cut)).rstrip()), soft_wrap=True)
        if len(lines) > len(shown):
            more = counted(len(lines) - len(shown), "more line", "more lines")
            console.print(Text(f"  │ … {more}", style="dim"))


def _hypotheses(console: Console, hypotheses: Sequence[Mapping[str, Any]]) -> None:
    if not hypotheses:
        return
    _heading(console, "What competed, and what was ruled out")
    for item in hypotheses:
        line = Text(f"{item['id']}  ", style="bold")
        line.append(_clean(item["title"]))
        line.append(f"   {_standing(item)}", style="cyan")
        _wrapped(console, line)
        if item.get("reason"):
            _prose(console, item["reason"], lead="    ", style="dim")
        for side in ("support", "against"):
            if item.get(side):
                console.print(Text(f"    {side}: {_ids(item[side])}", style="dim"))


def _standing(item: Mapping[str, Any]) -> str:
    """Return verdict (else status) and confidence, said once when they are the same."""
    standing = item.get("verdict") or item.get("status") or ""
    level = (item.get("effective_confidence") or "").replace("_", " ")
    return ", ".join(dict.fromkeys(word for word in (standing.replace("_", " "), level) if word))


def _spend(console: Console, spend: Mapping[str, Any]) -> None:
    if not spend:
        return
    cost = "unknown price" if spend.get("cost") is None else f"{spend['cost']:.4f}"
    _heading(console, "Spend")
    units = counted(spend.get("units", 0), "investigation unit", "investigation units")
    tokens = f"{spend.get('tokens_in', 0)} tokens in, {spend.get('tokens_out', 0)} out"
    console.print(Text(f"{units}, {tokens}, cost {cost}, {spend.get('seconds', 0):.1f} s"))


def _where_next(console: Console, view: Mapping[str, Any], home: Path, report_file: Path | None) -> None:
    _heading(console, "Where to look next")
    flag = "" if str(home) == ".viano" else f" --home {home}"
    case_id = view["case_id"]
    rows = f"FROM evidence SELECT evidence_id, tool, path, line_start WHERE case_id = '{case_id}'"
    lines = [
        f"again    viano case show {case_id}{flag}",
        f"verify   viano case verify {case_id}{flag}",
        f"UI       viano ui{flag}   (partition {view['partition_key']})",
        f'SQL      viano sql{flag} "{rows}"',
    ]
    if report_file is not None:
        lines.insert(0, f"report   {report_file}")
    for line in lines:
        console.print(Text(line), soft_wrap=True)


def write_report_file(store: Store, head: Head, home: Path) -> Path | None:
    """Copy the published HTML report of the current revision out of the package, to open it in a browser.

    Returns its path in `HOME/reports`, or None before a diagnosis exists. The copy is derived and may be
    deleted at any time.

    Raises:
        StorageError: `report_not_written`; the diagnosis itself is published and stays readable.
    """
    path = f"analysis/diagnosis/{head.revision:04d}/diagnosis.html"
    if path not in head.files:
        return None
    target = home / "reports" / f"{head.manifest.case_id}-r{head.revision}.html"
    content = store.read(head, path)
    try:
        write_bytes(target, content)
    except OSError as error:
        raise StorageError(
            "report_not_written",
            f"the HTML report could not be written: {os.strerror(error.errno or 0)}",
            where=str(target),
            hint=f"nothing is lost: viano case show {head.manifest.case_id} shows the diagnosis",
        ) from error
    return target


def print_result(
    store: Store, head: Head, home: Path, view: Mapping[str, Any], *, explain: bool = False
) -> None:
    """Print a case after a run, with the place of its HTML report and on demand why each place was named.

    Raises:
        StorageError: `report_not_written`, after everything was printed.
    """
    failed: StorageError | None = None
    report: Path | None = None
    try:
        report = write_report_file(store, head, home)
    except StorageError as error:
        failed = error
    print_case(view, home=home, report_file=report)
    if explain:
        explain_places(store, head)
    if failed is not None:
        raise failed


def print_case_list(rows: Sequence[Mapping[str, Any]], home: Path) -> None:
    """Print the cases of a home as a table."""
    console = _console()
    if not rows:
        console.print(Text(f"No cases in {home} yet. viano case import --help shows how to add one."))
        return
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("case", "state", "partition", "generation", "routing"):
        table.add_column(name)
    table.add_column("lifecycle", style="dim")
    for row in rows:
        table.add_row(
            row["case_id"],
            state_words(row.get("stage") or row["state"], row.get("overlay")),
            row.get("partition_key", ""),
            str(row.get("generation", "")),
            row.get("routing") or "",
            row["state"],
        )
    _print_table(console, table)


def print_reading(store: Store, head: Head, revision: int) -> None:
    """Print the interpretation and the hypotheses register, each statement with the words it rests on."""
    from viano_assets.case.assembler import load_case  # noqa: PLC0415  # only `case show` needs them
    from viano_assets.phases.hypotheses.summary import hypotheses_text  # noqa: PLC0415
    from viano_assets.phases.interpretation.summary import interpretation_text  # noqa: PLC0415

    reading = artifact_path(Phase.INTERPRETATION, revision, "interpretation.json")
    if reading not in head.files:
        return
    console, case = _console(), load_case(store, head, revision)
    document = read_json(store, head, reading)
    _heading(console, "What the report says")
    _lines(console, interpretation_text(document, case))
    register = artifact_path(Phase.HYPOTHESES, revision, "hypotheses.json")
    if register in head.files:
        statements = {item["id"]: item["text"] for item in document["statements"]}
        _heading(console, "Registered hypotheses")
        _lines(console, hypotheses_text(read_json(store, head, register), statements, case))


def explain_places(store: Store, head: Head) -> None:
    """Print the ranking records of the current revision: which signals led to which place."""
    from viano_assets.phases.diagnosis.view import evidence_records  # noqa: PLC0415

    console = _console()
    _heading(console, "Signals behind the ranking")
    for record in evidence_records(store, head, head.revision):
        if record.provenance.kind == "ranking":
            console.print(Text(f"{record.evidence_id} {record.tool}", style="bold"))
            console.print(Text(_clean(record.content)))
