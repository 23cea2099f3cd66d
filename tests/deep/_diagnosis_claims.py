"""Fabricated and drifted claims made from true evidence, judged by the gates.

Each fabrication changes what the evidence says; an independent look (not the product's matcher) makes sure
that the changed text does not stand in the evidence after all.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.deep._diagnosis_world import Evidence, answer, evidence
from tests.support.diagnosis_answers import changed
from viano_assets.phases.common import decode
from viano_assets.phases.diagnosis.contract import DiagnosisAnswer
from viano_assets.phases.diagnosis.rules import check

Json = dict[str, Any]
PER_KIND = 32

QUOTE_FIELDS = (
    "root_cause.summary",
    "root_cause.technical_description",
    "evaluations.0.reason",
    "evaluations.1.countercheck.reason",
    "evaluations.2.scope_limits.0",
    "final_reason",
    "remaining_uncertainty.0",
    "review_actions.0",
)


class Made(NamedTuple):
    """A fabricated answer: where it came from and what it says."""

    kind: str
    data: Json
    text: str


def _lines(world: Evidence, name: str) -> list[str]:
    return world.record(name).content.split("\n")


def _everywhere(world: Evidence) -> list[str]:
    return [
        " ".join(line.split())
        for record in world.ground.records.values()
        for line in record.content.split("\n")
    ]


def _absent(world: Evidence, quote: str) -> bool:
    """Say, by plain search and ignoring nothing but white space, that no line holds the quote."""
    flat = " ".join(quote.split())
    return not any(flat in line for line in _everywhere(world))


def _digit(line: str, random_: random.Random) -> str:
    places = [match.start() for match in re.finditer(r"\d", line)]
    at = random_.choice(places)
    other = random_.choice([digit for digit in "0123456789" if digit != line[at]])
    return line[:at] + other + line[at + 1 :]


def _one_digit(world: Evidence, name: str, random_: random.Random) -> str:
    return _digit(random_.choice([line for line in _lines(world, name) if re.search(r"\d", line)]), random_)


def _dropped_negation(world: Evidence, name: str, random_: random.Random) -> str:
    lines = [line for line in _lines(world, name) if re.search(r"!(?!=)|\bnot ", line)]
    return re.sub(r"!(?!=)|\bnot ", "", random_.choice(lines), count=1)


def _cut_negation(world: Evidence, name: str, random_: random.Random) -> str:
    lines = [line for line in _lines(world, name) if re.search(r"!(?!=)|\bnot ", line)]
    return re.split(r"!(?!=)|\bnot ", random_.choice(lines), maxsplit=1)[1]


def _joined(world: Evidence, name: str, random_: random.Random) -> str:
    lines = _lines(world, name)
    at = random_.randrange(len(lines) - 1)
    return f"{lines[at].strip()} {lines[at + 1].strip()}"


def _left_out(world: Evidence, name: str, random_: random.Random) -> str:
    lines = _lines(world, name)
    at = random_.randrange(len(lines) - 2)
    return f"{lines[at]}\n{lines[at + 2]}"


def _swapped(world: Evidence, name: str, random_: random.Random) -> str:
    lines = _lines(world, name)
    at = random_.randrange(2, len(lines) - 2)
    return f"{lines[at + 1]}\n{lines[at]}"


def _renamed(world: Evidence, name: str, random_: random.Random) -> str:
    line = random_.choice([line for line in _lines(world, name) if re.search(r"[a-z]{4}", line)])
    word = random_.choice(re.findall(r"[A-Za-z_]{4,}", line))
    return line.replace(word, word[:-1] + ("x" if word[-1] != "x" else "y"), 1)


def _operator(world: Evidence, name: str, random_: random.Random) -> str:
    swaps = {">=": ">", "!=": "==", "||": "&&", "&&": "||", "==": "!=", " * ": " + ", " - ": " + "}
    lines = [line for line in _lines(world, name) if any(sign in line for sign in swaps)]
    line = random_.choice(lines)
    sign = random_.choice([sign for sign in swaps if sign in line])
    return line.replace(sign, swaps[sign], 1)


def _case(world: Evidence, name: str, random_: random.Random) -> str:
    line = random_.choice([line for line in _lines(world, name) if line.lower() != line.upper()])
    return line.swapcase()


def _ellipsis(world: Evidence, name: str, random_: random.Random) -> str:
    line = random_.choice([line for line in _lines(world, name) if len(line) > 20])
    at = random_.randrange(8, len(line) - 8)
    return f"{line[: at - 4]}{random_.choice(['...', '…', ' [...] '])}{line[at:]}"


def _half_number(world: Evidence, name: str, random_: random.Random) -> str:
    line = random_.choice([line for line in _lines(world, name) if re.search(r"\b\d{4,}\b(?!\.)", line)])
    match = random_.choice(list(re.finditer(r"\b\d{4,}\b(?!\.)", line)))
    return line[: match.end() - 1].strip()


def _half_word(world: Evidence, name: str, random_: random.Random) -> str:
    line = random_.choice([line for line in _lines(world, name) if re.search(r"[A-Za-z]{5,}", line)])
    match = random_.choice(list(re.finditer(r"[A-Za-z]{5,}", line)))
    return line[match.start() + 2 :].strip()


def _literal(world: Evidence, name: str, random_: random.Random) -> str:
    line = next(line for line in _lines(world, name) if '"' in line)
    word = random_.choice(["never", "always", "twice", "again"])
    return line.replace('"', f'"{word} ', 1)


def _dropped_sign(world: Evidence, name: str, random_: random.Random) -> str:
    del random_
    return next(re.split(r", -(?=\d)", line)[1] for line in _lines(world, name) if re.search(r", -\d", line))


def _half_decimal(world: Evidence, name: str, random_: random.Random) -> str:
    match = next(m for line in _lines(world, name) if (m := re.search(r"(\d+)\.(\d+)", line)))
    return match[random_.choice([1, 2])]


def _in_marks(world: Evidence, name: str, random_: random.Random) -> str:
    return f"“{_operator(world, name, random_)}”"


CODE_EDITS: dict[str, Callable[[Evidence, str, random.Random], str]] = {
    "one digit": _one_digit,
    "dropped negation": _dropped_negation,
    "cut behind a negation": _cut_negation,
    "joined lines": _joined,
    "line left out": _left_out,
    "lines swapped": _swapped,
    "renamed identifier": _renamed,
    "other operator": _operator,
    "other case": _case,
    "ellipsis": _ellipsis,
    "half a number": _half_number,
    "half a word": _half_word,
    "changed literal": _literal,
    "dropped sign": _dropped_sign,
    "half a decimal": _half_decimal,
    "typographic marks": _in_marks,
}
CUTS = frozenset(
    {
        "dropped sign",
        "half a decimal",
        "cut behind a negation",
        "half a number",
        "half a word",
        "joined lines",
        "line left out",
        "lines swapped",
    }
)
"""Edits whose text may consist of true characters; what they say is false all the same."""


def _code(world: Evidence, random_: random.Random) -> list[Made]:
    made = []
    for kind, edit in CODE_EDITS.items():
        count = 0
        while count < PER_KIND:
            name = random_.choice(world.by_kind["source"])
            quote = edit(world, name, random_)
            if kind not in CUTS and not _absent(world, quote):
                continue
            field = QUOTE_FIELDS[count % len(QUOTE_FIELDS)]
            line = world.record(name).provenance.location
            shown = quote if quote.startswith("“") else f"`{quote}`"
            text = f"{shown} stands at {line.path}:{line.line_start}."
            made.append(Made(kind, changed(answer(world, name), field, text), quote))
            count += 1
    return made


def _rows(world: Evidence, random_: random.Random) -> list[Made]:
    unread = [row.cells for row in world.rows if not row.read]
    read = [row.cells for row in world.rows if row.read]
    made = []
    for number in range(PER_KIND):
        name = random_.choice(world.by_kind["row"])
        field = QUOTE_FIELDS[number % len(QUOTE_FIELDS)]
        near = random_.choice(unread)
        quote = f'"delay":"{near["delay"]}","entry":"{near["entry"]}"'
        mixed = {**random_.choice(read), "delay": random_.choice(unread)["delay"]}
        cell = f'"delay":"{mixed["delay"]}"'
        texts = {
            "neighbouring row": f"`{quote}`",
            "cell of another row": f"`{cell}`",
            "neighbouring row in words": f"The row with entry = {near['entry']} shows it.",
            "pair as quote": f"`stage={near['stage']}` shows it.",
        }
        for kind, text in texts.items():
            made.append(Made(kind, changed(answer(world, name), field, text), text))
    return made


def _logs(world: Evidence, random_: random.Random) -> list[Made]:
    made = []
    for number in range(PER_KIND):
        name = world.by_kind["log"][number % 20]
        cause = random_.choice(world.by_kind["source"])
        quote = _digit(world.record(name).content, random_)
        field = QUOTE_FIELDS[2 + number % (len(QUOTE_FIELDS) - 2)]
        made.append(Made("digit of a log line", changed(answer(world, cause), field, f"`{quote}`"), quote))
    return made


def _ids(world: Evidence, random_: random.Random) -> list[Made]:
    made = []
    fields = (
        "root_cause.evidence_ids.0",
        "evaluations.0.support.0",
        "evaluations.1.against.0",
        "evaluations.1.countercheck.evidence_ids.0",
        "final_reason",
    )
    count = len(world.ground.records)
    for number in range(PER_KIND):
        base = answer(world, random_.choice(world.by_kind["source"]))
        wrong = f"E{count + 1 + number}"
        field = fields[number % len(fields)]
        made.append(
            Made(
                "evidence id",
                changed(base, field, wrong if field != "final_reason" else f"{wrong} shows it"),
                wrong,
            )
        )
        form = random_.choice(
            [f"e{number + 1}", f"E0{number + 1}", f"E{number + 1} ", f"E{number}.5", "S1", "H1"]
        )
        made.append(Made("form of an id", changed(base, "evaluations.1.against.0", form), form))
        hypothesis = f"H{4 + number}"
        made.append(
            Made(
                "hypothesis id",
                changed(base, f"evaluations.{number % 3}.hypothesis_id", hypothesis),
                hypothesis,
            )
        )
    return made


def _ranges(world: Evidence, random_: random.Random) -> list[Made]:
    made = []
    for number in range(PER_KIND):
        name = random_.choice(world.by_kind["source"])
        location = world.record(name).provenance.location
        start, end = location.line_start or 0, location.line_end or 0
        field = QUOTE_FIELDS[number % len(QUOTE_FIELDS)]
        shift = random_.randint(13, 25)
        texts = {
            "line range moved": f"See {location.path}:{end + shift - 11}-{end + shift}.",
            "line range widened": f"See {location.path}:{start}-{end + shift}.",
            "line range without a file": f"See lines {end + 500 + number} to {end + 520}.",
            "file never read": f"See src/never_{number}.cpp:{start}.",
        }
        for kind, text in texts.items():
            made.append(Made(kind, changed(answer(world, name), field, text), text))
    return made


def _foreign(world: Evidence, random_: random.Random) -> list[Made]:
    made = []
    for number in range(PER_KIND):
        name, other = random_.sample(world.by_kind["source"], 2)
        quote = _lines(world, other)[random_.choice([3, 6, 7])]
        field = QUOTE_FIELDS[number % 2]
        made.append(
            Made(
                "quote of a record that carries nothing",
                changed(answer(world, name), field, f"`{quote}`"),
                quote,
            )
        )
    return made


def accepted(world: Evidence, data: Json) -> bool:
    """Say whether the gates let an answer pass."""
    decoded = decode(DiagnosisAnswer, data)
    return isinstance(decoded, DiagnosisAnswer) and not check(decoded, world.ground)


def fabricated(seed: int) -> dict[str, int]:
    """Return how many fabrications were made and how many passed; survivors on standard error."""
    world, random_ = evidence(seed), random.Random(seed)
    made = [item for make in (_code, _rows, _logs, _ids, _ranges, _foreign) for item in make(world, random_)]
    for name in (*world.by_kind["source"], *world.by_kind["row"]):
        if not accepted(world, answer(world, name)):
            raise AssertionError(f"the answer without the fabrication does not pass for {name}")
    passed = [item for item in made if accepted(world, item.data)]
    for item in passed:
        sys.stderr.write(f"accepted: {item.kind}: {item.text!r}\n")
    kinds = sorted({item.kind for item in made})
    sys.stderr.write(f"{len(made)} fabrications of {len(kinds)} kinds: {', '.join(kinds)}\n")
    return {"fabricated": len(made), "fabricated_accepted": len(passed)}


def drifted(seed: int, count: int) -> dict[str, int]:
    """Return how many true quotes with a wrong line were made and how many were rejected."""
    world, random_ = evidence(seed), random.Random(seed)
    rejected = 0
    for number in range(count):
        name = random_.choice(world.by_kind["source"] + world.by_kind["config"])
        location = world.record(name).provenance.location
        lines = _lines(world, name)
        start = random_.randrange(len(lines))
        span = lines[start : start + random_.choice([1, 1, 2, 3])]
        quote = "\n".join(line.replace("    ", random_.choice(["", "\t", "    "])) for line in span)
        drift = random_.choice([-9, -3, 4, 17, 250, 9000])
        at = max(1, (location.line_start or 1) + start + drift)
        field = QUOTE_FIELDS[number % len(QUOTE_FIELDS)]
        forms = (
            f"`{quote}` at {location.path}:{at}",
            f"Line {at}: `{quote}`",
            f"{location.path}, lines {at}-{at + 2}: `{quote}`",
        )
        data = changed(answer(world, name), field, random_.choice(forms))
        if not accepted(world, data):
            rejected += 1
            sys.stderr.write(f"rejected: {quote!r}\n")
    return {"drifted": count, "drifted_rejected": rejected}
