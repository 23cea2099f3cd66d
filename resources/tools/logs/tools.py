"""The `log.*` tools over all text of the diagnostics, configuration included.

An empty look into a log is `partial` as a rule: logs are rotated, cut and filtered. It is complete only where
the same kind of line is known to be written to a file that covers the time asked for, and for files that are
no logs.
"""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field

from resources.tools.contract import Arguments, compact, nothing, spec, unavailable
from resources.tools.logs.capability import NOWHERE, Topic, judge, level_counts, level_of, settings
from resources.tools.logs.excerpts import (
    LINE_CAP,
    Block,
    Hit,
    describe,
    excerpt,
    found,
    input_of,
    listed,
    origin_of,
    scope_of,
)
from resources.tools.logs.files import TextFile, find_file, reads_like_text, same_name
from resources.tools.logs.ranges import (
    Bounds,
    between,
    bounds_of,
    covers,
    first_at,
    runs_back,
    sampled,
    stamp_before,
    undated,
    within,
)
from resources.tools.logs.templates import MAX_BYTES, mine, shape
from resources.tools.logs.times import parse_bound
from resources.tools.source import search as engine
from viano_assets.evidence.model import Completeness, Draft, Location, Provenance, ToolResult
from viano_assets.evidence.text import clip

_COLLECT = 3_000
_SECONDS = 10.0


class SearchArguments(Arguments):
    """Arguments of `log.search`; `since` and `until` are times as they stand in the logs."""

    pattern: str = Field(min_length=1, max_length=500)
    regex: bool = False
    ignore_case: bool = False
    files: list[str] = Field(default_factory=list, max_length=10)
    since: str | None = None
    until: str | None = None
    context: int = Field(default=2, ge=0, le=20)
    limit: int = Field(default=20, ge=1, le=200)


class WindowArguments(Arguments):
    """Arguments of `log.window`: lines around a line or a time; reads any text file of the diagnostics."""

    file: str
    line: int | None = Field(default=None, ge=1)
    time: str | None = None
    before: int = Field(default=10, ge=0, le=150)
    after: int = Field(default=30, ge=0, le=150)


class TemplatesArguments(Arguments):
    """Arguments of `log.templates`."""

    file: str | None = None
    order: Literal["rare", "frequent", "first"] = "rare"
    contains: str | None = None
    limit: int = Field(default=40, ge=1, le=200)


class TimelineArguments(Arguments):
    """Arguments of `log.timeline`: several logs merged by time."""

    since: str
    until: str
    files: list[str] = Field(default_factory=list, max_length=10)
    limit: int = Field(default=80, ge=1, le=400)


class EntityArguments(Arguments):
    """Arguments of `log.entity`: everything about one id or name, as a whole word."""

    id: str = Field(min_length=1, max_length=200)
    files: list[str] = Field(default_factory=list, max_length=10)
    limit: int = Field(default=20, ge=1, le=200)


class CapabilityArguments(Arguments):
    """Arguments of `log.capability`."""

    file: str | None = None
    pattern: str | None = Field(default=None, max_length=500)
    level: str | None = None
    topic: str | None = None


SPECS = (
    spec("log.search", "find text in logs and configuration files", SearchArguments, 3),
    spec("log.window", "read lines of a log or configuration file around a line or time", WindowArguments, 2),
    spec("log.templates", "kinds of lines of a log with counts, rare ones first", TemplatesArguments, 4),
    spec("log.timeline", "several logs merged by time", TimelineArguments, 4),
    spec("log.entity", "every line about one id or name", EntityArguments, 3),
    spec("log.capability", "would such a line have been written at all", CapabilityArguments, 3),
)
MODELS: Mapping[str, type[Arguments]] = {
    "log.search": SearchArguments,
    "log.window": WindowArguments,
    "log.templates": TemplatesArguments,
    "log.timeline": TimelineArguments,
    "log.entity": EntityArguments,
    "log.capability": CapabilityArguments,
}


class Hits(NamedTuple):
    """Matching lines in the order of files and lines, and what cut the search."""

    lines: list[Hit]
    cause: str | None = None
    message: str = ""


class LogTools:
    """The log tools of one case.

    Args:
        files: all text files of the diagnostics.
        roots: directories that hold them (the view, and the UTF-8 twins of wide files).
        unread: paths of files that were shipped and are no text.
    """

    def __init__(self, files: Sequence[TextFile], roots: Sequence[Path], unread: Sequence[str] = ()) -> None:
        self.files = list(files)
        self._unread = sorted(set(unread) - {file.path for file in files})
        self._roots = list(roots)
        self._by_file = {str(file.file): file for file in files}

    def overview(self) -> list[dict[str, Any]]:
        """Describe every text file that is no table: kind, lines, encoding, time range, wholeness."""
        return [describe(file) for file in self.files if file.kind != "data"]

    def run(self, tool: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Run one tool whose arguments were checked."""
        if not self.files:
            return unavailable(tool, arguments, "no_logs", "the diagnostics hold no text files")
        runners: dict[str, Callable[[Mapping[str, Any]], ToolResult]] = {
            "log.search": self._search,
            "log.window": self._window,
            "log.templates": self._templates,
            "log.timeline": self._timeline,
            "log.entity": self._entity,
            "log.capability": self._capability,
        }
        return runners[tool](arguments)

    def _chosen(self, patterns: Sequence[str]) -> list[TextFile]:
        if not patterns:
            return [file for file in self.files if file.kind != "data"]
        return [file for file in self.files if _named(file.path, patterns)]

    def _beside(self, patterns: Sequence[str]) -> list[str] | None:
        """Return the files that were asked for, or that promise text, and are none; None for none."""
        if patterns:
            return [path for path in self._unread if _named(path, patterns)] or None
        return [path for path in self._unread if reads_like_text(path)] or None

    def _find(
        self, files: Sequence[TextFile], pattern: str, *, regex: bool, ignore_case: bool, word: bool = False
    ) -> Hits:
        wanted = {id(file) for file in files}
        lines: list[Hit] = []
        cause, message = None, ""
        for root in self._roots:
            inside = [f for f in files if f.file.is_relative_to(root)]
            if not inside:
                continue
            globs = [engine.exactly(f.file.relative_to(root).as_posix()) for f in inside]
            if len(globs) > 2_000:
                globs = []
            foreign = partial(_foreign, root, inside)
            found = engine.run(
                root, pattern, regex=regex, ignore_case=ignore_case, whole_word=word, globs=globs,
                limit=_COLLECT, timeout=_SECONDS, foreign=foreign,
            )  # fmt: skip
            cause, message = cause or found.cause, message or found.message
            for match in found.matches:
                file = self._by_file.get(str(root / match.path))
                if file is not None and id(file) in wanted:
                    start = match.start + (3 if file.content[:3] == b"\xef\xbb\xbf" else 0)
                    lines.append(Hit(file, file.line_at(start), start))
        if cause is None and any(len(file.content) > engine.MAX_FILE for file in files):
            cause = "file_too_large"
        first = {(hit.file.path, hit.line): hit for hit in reversed(lines)}
        return Hits(sorted(first.values(), key=lambda hit: (hit.file.path, hit.line)), cause, message)

    def _search(self, arguments: Mapping[str, Any]) -> ToolResult:
        asked = SearchArguments.model_validate(arguments)
        files = self._chosen(asked.files)
        if not files:
            return self._no_file("log.search", arguments, asked.files)
        bounds = bounds_of(asked.since, asked.until)
        if isinstance(bounds, str):
            return unavailable("log.search", arguments, "bad_time", bounds)
        hits = self._find(files, asked.pattern, regex=asked.regex, ignore_case=asked.ignore_case)
        if hits.cause == "bad_pattern":
            return unavailable("log.search", arguments, "bad_pattern", hits.message)
        matching = [hit for hit in hits.lines if inside(hit, bounds)]
        looked = scope_of(
            files, pattern=asked.pattern, since=asked.since, until=asked.until,
            undated=undated(files, bounds), not_read=self._beside(asked.files),
        )  # fmt: skip
        if not matching:
            return self._absent("log.search", arguments, files, looked, hits, bounds)
        return listed("log.search", arguments, looked, matching, hits.cause, asked.limit, asked.context)

    def _absent(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        files: Sequence[TextFile],
        looked: dict[str, Any],
        hits: Hits,
        bounds: Bounds,
    ) -> ToolResult:
        cause: str | None = hits.cause
        logs = [file for file in files if file.kind == "log"]
        if cause is None and logs:
            writing = {id(hit.file) for hit in hits.lines}
            for file in logs:
                if file.wholeness.state == "cut":
                    cause = "log_cut"
                elif id(file) not in writing:
                    cause = cause or "line_may_not_be_written"
                elif not covers(file, bounds):
                    cause = cause or "time_not_covered"
        if cause is None and any(stamp_before(hit.file, hit.line) is None for hit in hits.lines):
            cause = "time_unknown"
        cause = cause or ("file_not_read" if looked.get("not_read") else None)
        state = Completeness.PARTIAL if cause else Completeness.COMPLETE
        if hits.cause:
            state = Completeness.TRUNCATED
        one = files[0] if len(files) == 1 else None
        return nothing(
            tool, arguments, looked, state, "no line of the shipped text matches", cause=cause,
            location=Location(path=one.path) if one else None, origin=origin_of(files),
        )  # fmt: skip

    def _no_file(self, tool: str, arguments: Mapping[str, Any], names: Sequence[str]) -> ToolResult:
        """Say that a file is not there as text: never that it was not shipped when it was."""
        spoken = ", ".join(names)
        place = Location(path=names[0]) if len(names) == 1 else None
        lying = [path for path in self._unread if _named(path, names)]
        if lying:
            sentence = f"shipped, but not readable as text: {', '.join(lying[:20])}"
            return nothing(
                tool, arguments, {"not_read": lying[:20]}, Completeness.UNAVAILABLE, sentence,
                cause="file_not_read", location=place,
            )  # fmt: skip
        return nothing(
            tool, arguments, {"files_shipped": len(self.files) + len(self._unread)}, Completeness.PARTIAL,
            f"no file {spoken} was shipped", cause="file_not_shipped", location=place,
        )  # fmt: skip

    def _window(self, arguments: Mapping[str, Any]) -> ToolResult:
        asked = WindowArguments.model_validate(arguments)
        file = find_file(self.files, asked.file)
        if file is None:
            return self._no_file("log.window", arguments, [asked.file])
        line: int | None = asked.line or 1
        if asked.time is not None:
            bound = parse_bound(asked.time)
            if bound is None:
                return unavailable("log.window", arguments, "bad_time", f"{asked.time} is no time")
            line = first_at(file, bound)
        if line is None or line > file.lines:
            sentence = f"{file.path} has no such line ({file.lines} lines)"
            return nothing(
                "log.window", arguments, scope_of([file]), Completeness.PARTIAL, sentence,
                cause="out_of_range", location=Location(path=file.path), origin=file.origin,
            )  # fmt: skip
        first, last = max(1, line - asked.before), min(file.lines, line + asked.after)
        drafts = [excerpt(Block(file, first, last, None))]
        return found("log.window", arguments, scope_of([file], lines=[first, last]), drafts, None)

    def _templates(self, arguments: Mapping[str, Any]) -> ToolResult:
        asked = TemplatesArguments.model_validate(arguments)
        file = find_file(self.files, asked.file) if asked.file else None
        if asked.file and file is None:
            return self._no_file("log.templates", arguments, [asked.file])
        files = [file] if file else [f for f in self.files if f.kind == "log"]
        if not files:
            return self._no_file("log.templates", arguments, ["*.log"])
        kinds = [(f, t) for f in files for t in mine(f) if t.text.strip()]
        if asked.contains:
            kinds = [pair for pair in kinds if asked.contains.casefold() in pair[1].text.casefold()]
        if not kinds:
            return nothing(
                "log.templates", arguments, scope_of(files), Completeness.PARTIAL, "no such kind of line",
                cause="line_may_not_be_written", origin=origin_of(files),
            )  # fmt: skip
        orders: dict[str, Callable[[Any], tuple[Any, ...]]] = {
            "rare": lambda p: (p[1].number, p[0].path, p[1].first),
            "frequent": lambda p: (-p[1].number, p[0].path, p[1].first),
            "first": lambda p: (p[0].path, p[1].first),
        }
        kinds.sort(key=orders[asked.order])
        shown = kinds[: asked.limit]
        lines = [
            compact(
                {
                    "file": f.path,
                    "count": t.number,
                    "first": t.first,
                    "last": t.last,
                    "template": t.text[:300],
                }
            )
            for f, t in shown
        ]
        whole = len(kinds) == len(shown) and all(len(f.content) <= MAX_BYTES for f in files)
        cause = None if whole else "template_cap"
        draft = Draft(
            content="\n".join([compact({"templates": len(kinds), "shown": len(shown)}), *lines]),
            provenance=Provenance(kind="search", **input_of(files)),
            completeness=Completeness.TRUNCATED if cause else Completeness.COMPLETE,
            places=tuple(Location(path=f.path, line_start=t.first, line_end=t.first) for f, t in shown[:20]),
        )
        return found("log.templates", arguments, scope_of(files, order=asked.order), [draft], cause)

    def _timeline(self, arguments: Mapping[str, Any]) -> ToolResult:
        asked = TimelineArguments.model_validate(arguments)
        bounds = bounds_of(asked.since, asked.until)
        if isinstance(bounds, str):
            return unavailable("log.timeline", arguments, "bad_time", bounds)
        files = [f for f in self._chosen(asked.files) if f.kind != "config" and f.blocks]
        if not files:
            return self._no_file("log.timeline", arguments, asked.files or ["with times"])
        timed = [(file, between(file, bounds)) for file in files]
        entries = sorted(
            ((entry, file) for file, lines in timed for entry in lines),
            key=lambda pair: (pair[0].at, pair[1].path, pair[0].line),
        )
        looked = scope_of(
            files, since=asked.since, until=asked.until, undated=undated(files, bounds),
            not_read=self._beside(asked.files),
        )  # fmt: skip
        if not entries:
            covered = all(covers(file, bounds) and file.wholeness.state != "cut" for file in files)
            return nothing(
                "log.timeline", arguments, looked, Completeness.PARTIAL, "no line has a time in this range",
                cause="line_may_not_be_written" if covered else "time_not_covered", origin=origin_of(files),
            )  # fmt: skip
        back = [{"file": f.path, "line": n} for f, lines in timed if (n := runs_back(lines)) is not None]
        shown = entries[: asked.limit]
        head = {"lines": len(entries), "shown": len(shown)}
        rows = [compact({**head, "clock_runs_back": back} if back else head)]
        for entry, file in shown:
            text, _ = clip(file.text(entry.line, entry.line)[0], LINE_CAP)
            row = {"file": file.path, "line": entry.line, "zone": entry.stamp.zone_known, "text": text}
            rows.append(compact(row if entry.stamp.dated else {**row, "dated": False}))
        cause = "line_cap" if len(entries) > len(shown) else None
        state = Completeness.TRUNCATED if cause else Completeness.COMPLETE
        if cause is None and any(sampled(file, bounds) for file in files):
            cause, state = "log_sampled", Completeness.PARTIAL
        draft = Draft(
            content="\n".join(rows),
            provenance=Provenance(kind="search", timestamp=shown[0][0].stamp.text, **input_of(files)),
            completeness=state,
            places=tuple(Location(path=f.path, line_start=e.line, line_end=e.line) for e, f in shown[:40]),
        )
        return found("log.timeline", arguments, looked, [draft], cause, state)

    def _entity(self, arguments: Mapping[str, Any]) -> ToolResult:
        asked = EntityArguments.model_validate(arguments)
        files = [f for f in self._chosen(asked.files) if asked.files or f.kind != "config"]
        if not files:
            return self._no_file("log.entity", arguments, asked.files or ["with lines"])
        hits = self._find(files, asked.id, regex=False, ignore_case=False, word=True)
        looked = scope_of(files, id=asked.id, not_read=self._beside(asked.files))
        if not hits.lines:
            return self._absent("log.entity", arguments, files, looked, hits, (None, None))
        kinds = Counter((h.file.path, shape(h.file.text(h.line, h.line)[0])) for h in hits.lines[:1000])
        summary = [
            compact({"file": path, "count": number, "template": text[:300]})
            for (path, text), number in sorted(kinds.items(), key=lambda item: (item[1], item[0]))[:40]
        ]
        result = listed("log.entity", arguments, looked, hits.lines, hits.cause, asked.limit, 0)
        head = Draft(
            content="\n".join(
                [compact({"id": asked.id, "lines": len(hits.lines), "kinds": len(kinds)}), *summary]
            ),
            provenance=Provenance(kind="search", **input_of(files)),
            completeness=result.completeness,
        )
        return result.model_copy(update={"drafts": (head, *result.drafts)})

    def _capability(self, arguments: Mapping[str, Any]) -> ToolResult:
        asked = CapabilityArguments.model_validate(arguments)
        file = find_file(self.files, asked.file) if asked.file else None
        if asked.file and file is None:
            return self._no_file("log.capability", arguments, [asked.file])
        logs = [file] if file else [f for f in self.files if f.kind == "log"]
        lines = settings(self.files)
        levels: Counter[str] = Counter()
        for log in logs:
            levels.update(level_counts(log))
        seen = False
        if asked.pattern and logs:
            seen = bool(self._find(logs, asked.pattern, regex=False, ignore_case=True).lines)
        verdict = judge(
            asked.level, asked.topic, lines, dict(levels), seen=seen, standing=self._about(logs, asked.topic)
        )
        content = [
            compact({"verdict": verdict.verdict, "reasons": list(verdict.reasons)}),
            *(compact(describe(log)) for log in logs[:20]),
            compact({"levels_in_logs": dict(sorted(levels.items()))}),
            *(compact(setting._asdict()) for setting in lines[:60]),
        ]
        state = Completeness.PARTIAL if verdict.verdict == "unknown" else Completeness.COMPLETE
        draft = Draft(
            content="\n".join(content),
            provenance=Provenance(kind="search", **input_of(self.files)),
            completeness=state,
            places=tuple(Location(path=s.path, line_start=s.line, line_end=s.line) for s in lines[:20]),
        )
        looked = scope_of(logs, configuration=sorted({s.path for s in lines}))
        return found("log.capability", arguments, looked, [draft], None, state)

    def _about(self, logs: Sequence[TextFile], topic: str | None) -> Topic:
        """Return how many lines of the logs hold the topic as a word, and their levels."""
        if not topic or not logs:
            return NOWHERE
        hits = self._find(logs, topic, regex=False, ignore_case=True, word=True).lines
        levels = {level_of(hit.file.text(hit.line, hit.line)[0]) for hit in hits}
        return Topic(len(hits), frozenset(level for level in levels if level))


def _named(path: str, patterns: Sequence[str]) -> bool:
    """Say whether a path or its last part matches one of the globs, or is one of the names."""
    name = path.rsplit("/", 1)[-1]
    return any(
        fnmatch.fnmatchcase(path, p) or fnmatch.fnmatchcase(name, p) or same_name(name, p) for p in patterns
    )


def _foreign(root: Path, files: Sequence[TextFile]) -> list[str]:
    return [file.file.relative_to(root).as_posix() for file in files if file.foreign]


def inside(hit: Hit, bounds: Bounds) -> bool:
    """Say whether a hit, or the entry it continues, has a time within the range."""
    if bounds == (None, None):
        return True
    stamp = stamp_before(hit.file, hit.line)
    return stamp is not None and within(stamp, bounds)
