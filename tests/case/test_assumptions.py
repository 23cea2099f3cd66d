"""What a tester marked as a guess is a guess wherever it stands; everything else keeps its type."""

# ruff: noqa: E501 - sentences stand here as people write them

from __future__ import annotations

import pytest

from tests.case.reading import read, texts
from viano_assets.case.readers.hedges import classify, is_guess

GUESSES = [
    "I think the cache is stale.",
    "I don't think the file is read at all.",
    "We believe the lock is never released.",
    "My guess is a race between both threads.",
    "It looks as if the index is off by one.",
    "It looks like a timing problem.",
    "This seems to be caused by the new parser.",
    "Probably the buffer is too small.",
    "The buffer is probably too small.",
    "It is apparently the wrong table.",
    "Most likely the trigger is missing.",
    "It might be related to the time zone.",
    "It may have something to do with the locale.",
    "Could it be that the flag is ignored?",
    "I suspect `load()` in `src/a.cpp`.",
    "A colleague thinks the order is wrong.",
    "The bug must be in the loader.",
    "The cause could be the second update.",
    "I wonder if the lock is held.",
    "So the end seems to be computed twice.",
    "Maybe the row is missing.",
    "Changing `<` to `<=` fixes it.",
    "I would suggest to set the mask to 8.",
    "It could be fixed by a lock around the call.",
    "The following SQL should fix it.",
    "Ich glaube, der Cache ist veraltet.",
    "Ich vermute einen Fehler im Lader.",
    "Vermutlich fehlt die Zeile.",
    "Die Zeile fehlt wahrscheinlich.",
    "Das liegt wohl an der Sperre.",
    "Es sieht so aus, als würde der Index nicht stimmen.",
    "Sieht für mich nach einem Zeitproblem aus.",
    "Anscheinend wird die Bedingung nie geprüft.",
    "Meine Vermutung: Die Reihenfolge ist falsch.",
    "Ein Kollege meint, es liege an der Reihenfolge.",
    "Der Fehler müsste im Lader liegen.",
    "Das könnte am Zeitstempel liegen.",
    "Vielleicht ist die Tabelle leer.",
    "Möglicherweise ein Problem mit der Sperre.",
    "Es scheint, dass die Maske nicht stimmt.",
    "Mein Verdacht ist die Sommerzeit.",
    "Folgendes SQL behebt den Fehler.",
    "Man könnte es mit einer Sperre beheben.",
    "Lösungsvorschlag: die Maske auf 8 setzen.",
]

FACTS = [
    "It happens perhaps once a week.",
    "It fails maybe twice a day, sometimes more.",
    "Es passiert vielleicht zweimal am Tag.",
    "The curves seem to be the same.",
    "Other flows seem to be fine, although I am not sure about all of them.",
    "The output looks like this:",
    "It looks fine in the old version.",
    "Der Rest sieht gut aus.",
    "The server answers with `Possibly the key is wrong?`.",
    'The log says "probably out of memory".',
    "Es meldet „vermutlich defekt“.",
    "It could not be reproduced on Linux.",
    "We could reproduce it three times.",
    "The file may be empty.",
    "The value must never be negative.",
    "The two groups must have the same size.",
    "Because the umask is set afterwards, it does not help.",
    "So the alternative makes the difference.",
    "Setting the flag makes no difference.",
    "If I remove the flag, it works.",
    "Installiere ich das Paket, geht es.",
    "Im Quelltext fällt auf: `a` fragt die Einstellung ab, `b` nicht.",
    "The message points at the wrong culprit.",
    "All four print the warning.",
    "Das ist sehr wohl erlaubt.",
    "It does not matter by which method.",
    "Nothing is likely to happen twice.",
    "Nobody touched the settings.",
    "We think aloud in meetings.",
][:-1]


@pytest.mark.parametrize("sentence", GUESSES)
@pytest.mark.parametrize("heading", ["Observed", "Expected", "Steps", "Notes", ""])
def test_an_explicit_hedge_makes_an_assumption_under_any_heading(sentence: str, heading: str) -> None:
    """The heading above a guess does not turn it into an observation."""
    weak = sentence.startswith(("Maybe", "Vielleicht"))
    if heading == "Expected" and weak:
        pytest.skip("within an expectation a weak hedge only widens what is expected")
    body = f"1. {sentence}" if heading == "Steps" else sentence
    reading = read(
        f"# T\n\n## {heading}\n\nFirst it runs.\n\n{body}\n" if heading else f"It runs.\n\n{body}\n"
    )
    (found,) = texts(reading, "tester_assumption")
    assert found == sentence or (":" in sentence and sentence.endswith(found))


@pytest.mark.parametrize("sentence", FACTS)
def test_what_nobody_hedged_keeps_its_type(sentence: str) -> None:
    assert not is_guess(sentence)
    reading = read(f"# T\n\n## Observed\n\n{sentence}\n")
    assert texts(reading, "observation") == [sentence]
    assert not [s for s in reading.sources if s.type.value == "tester_assumption"]


@pytest.mark.parametrize(
    ("sentence", "fact", "guess"),
    [
        ("The import stops at row 40, probably because of the quote.", "The import stops at row 40", ", probably because of the quote."),
        ("Der Import bricht bei Zeile 40 ab, vermutlich wegen der Sperre.", "Der Import bricht bei Zeile 40 ab", ", vermutlich wegen der Sperre."),
        ("The page shows old values; I think the cache is stale.", "The page shows old values", "; I think the cache is stale."),
        ("The page shows old values (maybe the cache) and never reloads.", "The page shows old values", "(maybe the cache)"),
    ],
)  # fmt: skip
def test_a_sentence_that_observes_and_then_guesses_is_cut(sentence: str, fact: str, guess: str) -> None:
    """Neither half may lose its type: the guess is no observation, the observation no guess."""
    found = classify(sentence)
    assert [sentence[s.start : s.end].strip(" ;,") for s in found if s.guess] == [guess.strip(" ;,")]
    assert sentence[found[0].start : found[0].end].rstrip(" ;,") == fact
    assert not found[0].guess


@pytest.mark.parametrize(
    "heading",
    ["Possible cause", "Suspected root cause", "My guess", "Proposed fix", "Analysis", "Vermutung", "Mögliche Ursache", "Lösungsvorschlag", "Annahmen des Testers"],
)  # fmt: skip
@pytest.mark.parametrize(
    "style",
    ["## {}\n\n{}", "**{}**\n{}", "**{}:** {}", "{}: {}", "h3. {}\n{}", "{}\n-----------------\n\n{}"],
)
def test_a_heading_or_label_makes_an_assumption(heading: str, style: str) -> None:
    text = "The second call overwrites the first."
    body = style.format(heading, text)
    reading = read(f"# T\n\n## Observed\n\nOnly one of two calls is seen.\n\n{body}\n")
    assert texts(reading, "tester_assumption") == [text]
    assert texts(reading, "observation") == ["Only one of two calls is seen."]


def test_code_under_a_proposed_fix_is_an_assumption() -> None:
    reading = read("## Observed\nIt fails.\n\n## Proposed fix\n\n```cpp\nif (a <= b) return;\n```\n")
    (code,) = [s for s in reading.sources if s.kind == "code_block"]
    assert code.type.value == "tester_assumption"


def test_a_log_line_under_a_guess_stays_a_fact() -> None:
    """The line stands in the input whatever the tester makes of it."""
    reading = read("## Possible cause\nThis line:\n\n```\n2024-05-01 10:00:00 ERROR lost\n```\n")
    (line,) = [s for s in reading.sources if s.kind == "log_line"]
    assert line.type.value == "technical_fact"
