"""Limits: what the report promises ("up to 12"), and what a comparison in the code really admits."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from resources.llm.providers.offline.findings import Record

_N = r"(\d+(?:[.,]\d+)?)"
_MAX_INCLUSIVE = (
    r"up to|at most|no more than|not more than|a maximum of|maximum(?: is| of)?|bis zu|bis einschließlich|"
    r"höchstens|maximal|nicht mehr als"
)
_MAX_EXCLUSIVE = r"less than|fewer than|below|under|weniger als|unter|kleiner als"
_MIN_INCLUSIVE = (
    r"at least|no less than|not less than|a minimum of|minimum(?: is| of)?|from|starting (?:at|with)|"
    r"mindestens|wenigstens|ab"
)
_MIN_EXCLUSIVE = r"more than|greater than|above|over|mehr als|über|größer als"
_OR_MORE = r"or more|or longer|or later|or higher|and more|oder mehr|oder länger|oder höher"
_OR_LESS = r"or less|or fewer|or shorter|inclusive|oder weniger|oder kürzer|einschließlich"
_PHRASES = (
    ("max", True, rf"\b(?:{_MAX_INCLUSIVE})\s+(?:\w+\s+)?{_N}"),
    ("max", False, rf"\b(?:{_MAX_EXCLUSIVE})\s+{_N}"),
    ("min", True, rf"\b(?:{_MIN_INCLUSIVE})\s+(?:\w+\s+)?{_N}"),
    ("min", False, rf"\b(?:{_MIN_EXCLUSIVE})\s+{_N}"),
    ("min", True, rf"{_N}\s+(?:\w+\s+)?(?:{_OR_MORE})\b"),
    ("max", True, rf"{_N}\s+(?:\w+\s+)?(?:{_OR_LESS})\b"),
)
_OPERAND = r"[A-Za-z_][\w]*(?:(?:\.|->|::)[A-Za-z_]\w*)*(?:\([^()]*\))?(?:\[[^\[\]]*\])?|\d+(?:\.\d+)?"
_SUM = rf"(?:{_OPERAND})(?:\s*[+-]\s*\d+(?![\w.]))?"
_COMPARISON = re.compile(rf"(?P<left>{_SUM})\s*(?P<op><=|>=|<(?![<=])|>(?![>=])|==|!=)\s*(?P<right>{_SUM})")
_OFFSET = re.compile(r"^(.*?)\s*([+-])\s*(\d+)$")
_NEGATED = re.compile(r"(?:!\s*\(|\bnot\s*\(?)\s*$")
_COUNT = r"(?:\b(?:[Ss]ize|[Ll]ength|[Cc]ount|len)\s*\(|\.length\b|\.[Cc]ount\b)"
_FLIP = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}
_OPPOSITE = {"<": ">=", ">": "<=", "<=": ">", ">=": "<", "==": "!=", "!=": "=="}
_OUTCOME: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_REFUSES = re.compile(
    r"\b(?:return\s+(?:false|False|None|nullptr|NULL|-1|0)\b|throw\b|raise\b|continue\b)|"
    r"refus|reject|den(?:y|ied)|declin|forbid|block|fail|error|invalid|too[_A-Z ]|not[_ ]?allowed|"
    r"turned away|skip",
    re.IGNORECASE,
)
_ACCEPTS = re.compile(r"\breturn\s+(?:true|True|1)\b|\b\w*(?:_OK|::Ok|SUCCESS|ALLOW\w*|ACCEPT\w*|GRANT\w*)\b")


@dataclass(frozen=True, slots=True)
class Bound:
    """A limit as the report states it: `max` or `min`, its number, whether the number itself is inside."""

    side: str
    number: float
    inclusive: bool
    text: str

    def admits(self, value: float) -> bool:
        """Say whether a value lies inside."""
        if value == self.number:
            return self.inclusive
        return value < self.number if self.side == "max" else value > self.number


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison with the limit on the right-hand side.

    `refuses` says whether its branch turns the value away; None when the branch does not tell. `offset` is
    what the code adds to the value; `counted` says that the value is a number of things present, which
    may be tested before or after one more is added.
    """

    value: str
    op: str
    limit: str
    line: str
    record: Record
    refuses: bool | None
    offset: float = 0.0
    counted: bool = False

    def true_for(self, value: float, limit: float) -> bool:
        """Evaluate the comparison."""
        return outcome(value + self.offset, self.op, limit)

    def admits(self, value: float, limit: float) -> bool:
        """Say whether the code lets a value pass."""
        return self.true_for(value, limit) != bool(self.refuses)

    def breaks(self, bound: Bound, limit: float) -> bool:
        """Say whether the code decides otherwise than a promise near the limit, however the value is meant.

        A number of things may be meant with or without the one that is asked for; only a comparison that is
        wrong both ways breaks the promise.
        """
        if self.op in {"==", "!="}:
            return False
        shifts = (0.0, 1.0) if self.counted or self.offset else (0.0,)
        near = (limit - 2, limit - 1, limit, limit + 1)
        return all(
            any(
                self.admits(v, limit) != bound.admits(v + shift) and self.decides_alone(v, limit)
                for v in near
            )
            for shift in shifts
        )

    def decides_alone(self, value: float, limit: float) -> bool:
        """Say whether the comparison's outcome settles the whole condition it stands in."""
        either = re.search(r"\|\||\bor\b", self.line) is not None
        both = re.search(r"&&|\band\b", self.line) is not None
        true = self.true_for(value, limit)
        return not (either and both) and not (either and not true) and not (both and true)


def outcome(left: float, op: str, right: float) -> bool:
    """Evaluate a comparison of two numbers."""
    return _OUTCOME[op](left, right)


def bounds(text: str) -> list[Bound]:
    """Return the limits a text states, in order of their kinds."""
    found: dict[tuple[str, float], Bound] = {}
    for side, inclusive, pattern in _PHRASES:
        for match in re.finditer(pattern, text, re.IGNORECASE):
            number = float(match[1].replace(",", "."))
            found.setdefault((side, number), Bound(side, number, inclusive, " ".join(match[0].split())))
    return list(found.values())


def tail(operand: str) -> str:
    """Return the last name of an operand: `train.wagons()` gives `wagons`."""
    bare = re.sub(r"[(\[].*$", "", operand)
    return re.split(r"\.|->|::", bare)[-1]


def _is_limit(operand: str, names: frozenset[str]) -> bool:
    """Say whether an operand is a limit: its last name is one, or it is a call that is given one."""
    given = operand.partition("(")[2]
    return tail(operand) in names or any(re.search(rf"\b{re.escape(name)}\b", given) for name in names)


def comparisons(record: Record, names: frozenset[str]) -> Iterator[Comparison]:
    """Yield the comparisons of a record with one of `names` (last names of operands) as the limit."""
    lines = record.content.splitlines()
    for number, line in enumerate(lines):
        if line.lstrip().startswith(("//", "#", "*", "/*")):
            continue
        for match in _COMPARISON.finditer(line):
            (left, more), (right, less), op = _split(match["left"]), _split(match["right"]), match["op"]
            op = _OPPOSITE[op] if _NEGATED.search(line[: match.start()]) else op
            if _is_limit(right, names) and not _is_limit(left, names):
                value, limit = left, right
            elif _is_limit(left, names) and not _is_limit(right, names):
                value, limit, op = right, left, _FLIP[op]
                more, less = less, more
            else:
                continue
            rest = "\n".join([line[match.end() :], *lines[number + 1 : number + 4]])
            yield Comparison(
                value,
                op,
                limit,
                line.strip(),
                record,
                refuses(line, rest),
                offset=more - less,
                counted=_counted(value, record),
            )


def _split(operand: str) -> tuple[str, float]:
    """Split `carried + 1` into the operand and what is added to it."""
    match = _OFFSET.match(operand)
    if match is None:
        return operand, 0.0
    return match[1], float(match[3]) * (1 if match[2] == "+" else -1)


def _counted(value: str, record: Record) -> bool:
    if re.search(_COUNT, value) is not None:
        return True
    assigned = rf"(?<![\w.>]){re.escape(value)}\s*(?::=|=(?!=)|\{{|\()[^;\n]*{_COUNT}"
    return re.search(assigned, record.content) is not None


def refuses(line: str, rest: str) -> bool | None:
    """Say whether the way a true condition leads turns away; None when it does not tell.

    `rest` is what follows the condition: the end of its line and the lines below.
    """
    if re.match(r"\s*return\b", line):
        return False
    taken = _branch(rest)
    if turns_away(taken):
        return True
    return False if _ACCEPTS.search(taken) else None


def _branch(text: str) -> str:
    """Return what follows a condition when it holds: the rest of its line and the deeper lines below it."""
    first, *rest = text.split("\n")
    if re.search(r"\b(?:return|throw|raise|continue|break)\b", first):
        return first
    kept, depth = [first], -1
    for line in rest:
        indent = len(line) - len(line.lstrip())
        if line.strip() and (indent < depth or line.lstrip().startswith("}")):
            break
        depth = indent if depth < 0 and line.strip() else depth
        kept.append(line)
    return "\n".join(kept)


def block(text: str) -> str:
    """Return the lines of a branch, up to the line that closes it."""
    return re.split(r"\n\s*\}", text, maxsplit=1)[0]


def turns_away(branch: str) -> bool:
    """Say whether a branch refuses: it returns nothing, raises, or speaks of a refusal."""
    return _REFUSES.search(branch) is not None
