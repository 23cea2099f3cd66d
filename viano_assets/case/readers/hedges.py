"""Sentences, and which of them a tester marked as a guess.

A guess is only what the words say: "I think", "probably", "vermutlich", "the following SQL fixes it". A
sentence that merely sounds like an explanation keeps its type. Quoted program output is nobody's guess, so
everything in code marks or quotation marks is masked before the search. A hedge of an amount or frequency
("perhaps once a week") is an observation, and so is an impression ("the others seem fine").
"""

# ruff: noqa: E501 - a pattern is read in one piece

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|ca|approx|resp|incl|no|nr|fig|ver|z\. ?b|d\. ?h|u\. ?a|bzw|ggf|evtl|vgl|usw|sog"
    r"|o\. ?ä|abs|inkl|max|min|mr|mrs|dr|st)|\b[A-Za-z])\.$",
    re.IGNORECASE,
)
_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]`*_]*+(?=\s)|\n[ \t]*\n")
_MASKED = re.compile(
    r"```.*?```|``[^\n]+?``|`[^`\n]+`|\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|„[^“”\n]{1,300}[“”]|«[^»\n]{1,300}»"
    r"|»[^«\n]{1,300}«",
    re.DOTALL,
)

_PERSON = (
    r"(?:i|we|he|she|they|someone|somebody|(?:a|one|my|our|another|the|some)\s+(?:colleagues?|testers?|users?"
    r"|developers?|players?|friends?))"
)
_PERSON_DE = (
    r"(?:ich|wir|er|sie|man|jemand|(?:ein|eine|mein|meine|unser|unsere|der|die|ein\s+anderer|manche|einige)"
    r"\s+(?:kolleg|tester|nutzer|spieler|entwickler|freund)\w*)"
)
_FAULT = r"(?:bug|fault|error|problem|cause|reason|issue|mistake|defect|code|check|logic|culprit)"
_FAULT_DE = r"(?:fehler|ursache|grund|problem|defekt|code|prüfung|stelle)"


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_STRONG = _any(
    rf"\b{_PERSON}(?:['’](?:d|m|ve))?(?:\s+(?:do|don['’]t|would|can|could|also|just|still|now|strongly|only))*\s+"
    r"(?:think|thinks|thought|believe|believes|guess|guesses|suspect|suspects|suspected|assume|assumes|assumed"
    r"|suppose|presume|reckon|bet|imagine|speculate)\b",
    r"\bi['’]m\s+(?:guessing|assuming|thinking)\b|\bimho\b|\bimo\b|\bafaict\b",
    r"\b(?:my|our|a|best|first|wild)\s+(?:guess|theory|hunch|suspicion|assumption|hypothesis|bet)\b",
    r"\b(?:probably|presumably|apparently|supposedly|seemingly|conceivably|(?:most|very|quite)\s+likely)\b",
    r"\b(?:is|are|was|it['’]s|that['’]s|seems)\s+likely\b(?!\s+to\s+(?:happen|occur|fail))",
    r"\b(?:it|this|that|which)\s+(?:(?:all|just|also|really)\s+)?(?:looks?|looked|seems?|seemed|appears?|appeared|sounds?)"
    r"\s+(?:to\s+(?:me|us)\s+)?(?:as\s+(?:if|though)\b|like\s+(?!this\b|that\b|so\b|the\s+following|[`\"“])|that\b"
    r"|to\s+be\s+(?:caused|related|due|because|something|a\b|an\b|the\b))",
    r"(?:^|[.;]\s+|\b)(?:so|thus|hence|therefore|maybe|perhaps)\b[^.;\n]{0,120}\b(?:seems?|appears?)\s+to\b",
    r"\bsuspected\s+(?:cause|bug|culprit|reason)\b|\bsuspicion\s+is\b",
    rf"\b{_FAULT}\b[^.\n]{{0,60}}\b(?:must|might|may|could|should)\s+(?:be|lie|sit|come|have)\b",
    r"\b(?:might|may|could|must)\s+(?:well\s+|also\s+|perhaps\s+)?(?:be\s+(?:caused|related|due|because|that\b|something"
    r"|a\s+(?:bug|race|problem|regression)|the\s+(?:cause|reason|culprit|problem))"
    r"|have\s+(?:something\s+)?to\s+do\s+with|come\s+from|stem\s+from|result\s+from)",
    r"\bcould\s+it\s+be\b|\bi\s+wonder\s+(?:if|whether)\b",
    rf"\b{_PERSON_DE}\s+(?:\w+\s+)?(?:glaub|denk|vermut|schätz|tipp|mein|nehm|nimm|ahn)(?:e|en|t|st)?\b(?!\s+nicht\s+zu)",
    r"\b(?:glaube|denke|vermute|tippe|schätze)\s+(?:ich|wir)\b|\bnehme(?:n)?\s+(?:ich|wir)\s+an\b",
    r"\b(?:mein(?:e)?|unser(?:e)?)\s+(?:erste\w?\s+)?(?:vermutung|theorie|annahme|verdacht|hypothese|tipp)\b",
    r"\b(?:vermutlich|wahrscheinlich|womöglich|möglicherweise|anscheinend|offenbar|scheinbar|mutmaßlich|vermutet\w*)\b",
    r"(?<!sehr )(?<!zum )\bwohl\b(?!\s+(?:aber|gemerkt|fühl))",
    r"\bes\s+scheint\b|\bscheint\s+es\b|\bsieht\s+(?:(?:so|danach|für\s+mich|für\s+uns|mir)\s+)*aus,?\s+als\b"
    r"|\bsieht\s+(?:stark\s+|sehr\s+|(?:für\s+)?(?:mich|uns|mir)\s+)*nach\b[^.\n]{0,80}\baus\b",
    r"\b(?:könnte|dürfte|mag|kann\s+sein)\b[^.\n]{0,80}\b(?:liegen|zusammenhängen|zu\s+tun\s+haben|verursacht|schuld"
    r"|die\s+ursache|der\s+grund|daran|dass)\b",
    r"\bes\s+liege\s+an\b|\b(?:der|ein|mein|unser)\s+verdacht\b|\bverdächtig(?:e|t|en)\b",
    rf"\b{_FAULT_DE}\b[^.\n]{{0,60}}\b(?:muss|müsste|könnte|dürfte)\b[^.\n]{{0,60}}\b(?:liegen|stecken|sein|stehen|sitzen)\b",
)
_WEAK = _any(
    r"\b(?:perhaps|maybe|possibly)\b",
    r"\b(?:vielleicht|eventuell|evtl\.)",
    r"\bmight\s+(?:also\s+|well\s+)?be\b",
    r"\b(?:it|this|that)\s+(?:may|could)\s+(?:also\s+|well\s+)?be\b",
)
_AMOUNT = re.compile(
    r"\b(?:perhaps|maybe|possibly|probably|vielleicht|eventuell|wahrscheinlich|evtl\.)\s+"
    r"(?:about\s+|around\s+|only\s+|nearly\s+|almost\s+|etwa\s+|nur\s+|fast\s+|rund\s+)*"
    r"(?:\d|once|twice|one|two|three|four|five|ten|half|a\s+(?:few|third|quarter|dozen)|several|every|each|more\s+often"
    r"|more\s+frequent|less|fewer|(?:ein|zwei|drei|vier|fünf|zehn)(?:mal)?\b|halb|alle|jede|ein\s+paar|einige|mehrere|öfter"
    r"|seltener|häufiger|mehr|weniger)",
    re.IGNORECASE,
)
_FIX = _any(
    r"\b(?:proposed|suggested|possible|potential|quick|likely|my|a)\s+(?:bug\s*)?(?:fix|patch|solution)\b(?!\s+(?:was|is)\s+not)",
    r"\bi\s+(?:would\s+|['’]d\s+)?(?:suggest|propose)\b|\bi['’]d\s+(?:suggest|propose)\b",
    r"\b(?:can|could|should|would|might)\s+be\s+(?:easily\s+|simply\s+)?(?:fixed|solved|repaired|corrected)\s+(?:by|with|if|in)\b",
    r"\b(?:the|this|following|attached|below|these)\b[^.\n]{0,40}\b(?:patch|sql|diff|change|query|statement|update|line|script)s?\b"
    r"[^.\n]{0,40}\b(?:fix(?:es)?|solves?|repairs?|should\s+(?:fix|solve|help|do)|would\s+(?:fix|solve|help))\b",
    r"\b(?:changing|replacing|adding|removing|swapping|setting|inserting)\b[^.\n]{1,100}\b(?:fix(?:es)?|solves?"
    r"|(?:should|would|might|could)\s+(?:fix|solve|help|do))\b",
    r"\b(?:to|as\s+a)\s+fix\b[^.\n]{0,40}[,:]|\bfix\s*:",
    r"\b(?:korrektur|lösungs|fix|behebungs|änderungs|reparatur)[- ]?vorschlag\b|\bvorschlag\s*:",
    r"\b(?:folgende\w*|dies\w*|beigefügte\w*|angehängte\w*)\b[^.\n]{0,40}\b(?:sql|patch|änderung|skript|abfrage|anweisung|zeile)\w*\b"
    r"[^.\n]{0,60}\b(?:behebt|behöbe|löst|repariert|beheben|lösen|reparieren|korrigiert|korrigieren)\b",
    r"\b(?:ich|wir)\s+(?:schlage|schlagen|würde|würden)\b[^.\n]{0,40}\b(?:vor|ändern|ersetzen|setzen|ergänzen)\b",
    r"\b(?:ließe|lässt|könnte|sollte|müsste)\b[^.\n]{0,60}\b(?:beheben|behoben|korrigiert|korrigieren|repariert|lösen)\b",
    r"\b(?:eine?|die)\s+(?:mögliche\s+)?lösung\s+(?:wäre|ist|könnte)\b",
)
_ABILITY = re.compile(
    r"\b(?:can|could|should|would|might)\s+be\s+(?:fixed|solved)\s+(?:in|by)\s+(?:the\s+)?(?:next|future|a\s+later)",
    re.IGNORECASE,
)
_CUT = re.compile(r";\s+|\s[–—-]\s|\s\(|,\s+")


class Sentence(NamedTuple):
    """A half-open slice of the text and whether it is marked as a guess."""

    start: int
    end: int
    guess: bool


def masked(text: str) -> str:
    """Return the text with everything in code marks or quotation marks replaced by spaces."""
    return _MASKED.sub(lambda match: " " * len(match[0]), text)


def is_guess(text: str, *, expectation: bool = False) -> bool:
    """True when the words mark `text` as a guess or a ready-made fix.

    Within an expectation a weak hedge ("possibly with a warning") only widens what is expected.
    """
    return _first_hedge(masked(text), expectation) is not None


def is_fix(text: str) -> bool:
    """True when the words offer a fix."""
    return _FIX.search(masked(text)) is not None


def _first_hedge(plain: str, expectation: bool) -> int | None:
    found: list[int] = []
    for pattern in (_STRONG, _FIX) if expectation else (_STRONG, _FIX, _WEAK):
        for match in pattern.finditer(plain):
            word = re.search(r"\S", match[0])
            start = match.start() + (word.start() if word else 0)
            if not _of_amount(plain, match) and not _ABILITY.match(plain, start):
                found.append(start)
                break
    return min(found, default=None)


def _of_amount(plain: str, match: re.Match[str]) -> bool:
    return any(
        amount.start() <= match.start() < amount.end() or match.start() <= amount.start() < match.end()
        for amount in _AMOUNT.finditer(plain, max(0, match.start() - 1), match.end() + 60)
    )


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the slices of the sentences, without the space around them."""
    plain = masked(text)
    at = 0
    for match in _END.finditer(plain):
        if _ABBREVIATION.search(plain, max(0, at, match.end() - 8), match.end()) and match[0].startswith("."):
            continue
        rest = plain[match.end() : match.end() + 60].lstrip()
        if (
            match[0].startswith(".")
            and rest
            and rest[0].islower()
            and text[match.end() : match.end() + 60].lstrip()[:1] != "`"
        ):
            continue
        yield from _trimmed(text, at, match.end())
        at = match.end()
    yield from _trimmed(text, at, len(text))


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield start, end


def classify(text: str, *, expectation: bool = False) -> list[Sentence]:
    """Split prose into sentences and say which are guesses.

    A sentence that states something first and guesses after a break ("It stops, probably because …") is
    cut there, so that neither half loses its type.
    """
    result: list[Sentence] = []
    for start, end in sentences(text):
        plain = masked(text[start:end])
        hedge = _first_hedge(plain, expectation)
        if hedge is None:
            result.append(Sentence(start, end, guess=False))
        else:
            result.extend(_cut(text, start, hedge, plain))
    return result


def _near(plain: str, start: int, hedge: int) -> bool:
    """True when at most two words of ordinary length stand between."""
    return hedge - start <= 200 and len(plain[start:hedge].split()) <= 2


def _cut(text: str, start: int, hedge: int, plain: str) -> Iterator[Sentence]:
    """Yield a guessing sentence, what it states before (or after a bracket) apart."""
    begin = 0
    bracket = False
    for match in reversed(list(_CUT.finditer(plain, 0, hedge + 2))):
        near = not match[0].startswith(",") or _near(plain, match.end(), hedge)
        if match.end() <= hedge + 1 and near:
            if len(plain[: match.start()].split(None, 4)) >= 4:
                begin = match.start() + (1 if match[0].startswith((";", ",")) else 0)
                bracket = match[0] == " ("
            break
    if begin and len(plain[hedge:].split()) <= 3 and not bracket:
        begin = 0
    stop = len(plain)
    if bracket:
        close = plain.find(")", hedge)
        stop = close + 1 if close >= 0 else stop
    pieces = ((0, begin, False), (begin, stop, True), (stop, len(plain), False))
    for first, last, guess in pieces:
        for a, b in _trimmed(text, start + first, start + last):
            if guess or any(c.isalnum() for c in text[a:b]):
                yield Sentence(a, b, guess=guess)
