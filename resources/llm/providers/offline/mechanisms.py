"""The mechanism families the analyst lets compete; each names what it predicts and what would refute it.

A family is recognised later by the word before the colon in its title. The texts speak of the case only
through its own words (`focus`), never of a project.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mechanism:
    """One family: `needs` are the input roles without which it cannot be examined."""

    family: str
    title: str
    mechanism: str
    rationale: str
    distinction: str
    expected: tuple[str, ...]
    falsifying: tuple[str, ...]
    questions: tuple[str, ...]
    needs: frozenset[str]


CODE = Mechanism(
    family="Code",
    title="Code: the code that handles this decides wrongly",
    mechanism=(
        "A condition, comparison, order of steps or computed value in the function that handles the "
        "reported situation is wrong, so that {focus}"
    ),
    rationale="The report describes a behaviour that the handling code itself decides.",
    distinction="Data and configuration are as they should be; only the code's decision is at fault.",
    expected=(
        (
            "A function that handles the reported situation and whose condition or order does not fit the "
            "expected behaviour."
        ),
    ),
    falsifying=(
        "The handling code does what is expected as soon as the data and the configuration are as expected.",
    ),
    questions=("Which function decides the reported behaviour?",),
    needs=frozenset({"source"}),
)

DATA = Mechanism(
    family="Data",
    title="Data: a record or link that this needs is missing or wrong",
    mechanism=(
        "The code reads stored records to handle the reported situation; a record, link or later stage of "
        "the affected item is absent or holds a wrong value, so that {focus}"
    ),
    rationale="Only some items are affected, or the behaviour stops at a stage that records describe.",
    distinction="The same code works for sibling items whose records are complete.",
    expected=("Sibling items have a record or value that the affected item lacks.",),
    falsifying=("The affected item has every record that working siblings have, with values alike.",),
    questions=("Which records does the affected item have at each stage, compared with working ones?",),
    needs=frozenset({"diagnostics"}),
)

CONFIGURATION = Mechanism(
    family="Configuration",
    title="Configuration: a configured value produces this behaviour",
    mechanism=(
        "The code obeys a configured value, and the value set in the affected installation differs from "
        "what the expectation takes for granted, so that {focus}"
    ),
    rationale="The same code and data behave differently under another configured value.",
    distinction="Neither the code nor the records are at fault; a setting is.",
    expected=("A configured value that differs from its default and governs the reported behaviour.",),
    falsifying=("The governing value equals its default or the expected value.",),
    questions=("Which setting governs the reported behaviour, and what is its value there?",),
    needs=frozenset({"diagnostics"}),
)

UPSTREAM = Mechanism(
    family="Upstream",
    title="Upstream: an earlier step hands on a wrong or incomplete value",
    mechanism=(
        "The place where the fault shows is correct; a caller or an earlier step hands over a value that "
        "it should have converted, checked or completed, so that {focus}"
    ),
    rationale="The place where a fault shows need not be the place where it is made.",
    distinction="The faulty decision lies in a caller or producer, not where the symptom appears.",
    expected=("A caller that passes the value on without the conversion or check that its siblings make.",),
    falsifying=("Every caller hands over a value the failing place is documented to accept.",),
    questions=("Who calls the place where the fault shows, and with what?",),
    needs=frozenset({"source"}),
)

INTENDED = Mechanism(
    family="Intended",
    title="Intended: the behaviour is as designed, or the premise does not hold",
    mechanism=(
        "The described behaviour follows from documented design or from how the feature was used, or the "
        "feature that the report takes for granted does not exist in this version, so that {focus}"
    ),
    rationale="A report states an expectation; the design may state another.",
    distinction="Nothing is broken; the expectation or the premise differs from what the version provides.",
    expected=("A passage of documentation, a comment or a check that states this behaviour as meant.",),
    falsifying=("Documentation or sibling code that states the expected behaviour as meant.",),
    questions=("Where is the expected behaviour promised for this version?",),
    needs=frozenset(),
)

ENVIRONMENT = Mechanism(
    family="Environment",
    title="Environment: something around the program makes the difference",
    mechanism=(
        "A version, platform, timing or resource outside the program's own code and data makes the "
        "difference between the working and the failing run, so that {focus}"
    ),
    rationale="The report names an environment, and a second environment was not compared.",
    distinction="The same code, data and configuration work elsewhere.",
    expected=("A log line or version note that ties the fault to the environment.",),
    falsifying=("The fault follows from the code and the data alone.",),
    questions=("Does the fault appear in a second environment?",),
    needs=frozenset(),
)


def candidates(roles: frozenset[str], count: int) -> list[Mechanism]:
    """Return `count` families in the order in which they shall compete for inputs of these roles."""
    if "diagnostics" in roles and "source" in roles:
        order = [CODE, DATA, CONFIGURATION, INTENDED, UPSTREAM, ENVIRONMENT]
    elif "diagnostics" in roles:
        order = [DATA, CONFIGURATION, INTENDED, ENVIRONMENT, CODE, UPSTREAM]
    else:
        order = [CODE, UPSTREAM, INTENDED, ENVIRONMENT, DATA, CONFIGURATION]
    return order[:count]


def family_of(title: str) -> str:
    """Return the family word of a hypothesis title, or `Code` for a foreign one."""
    word = title.split(":", 1)[0].strip()
    known = {m.family for m in (CODE, DATA, CONFIGURATION, UPSTREAM, INTENDED, ENVIRONMENT)}
    return word if word in known else CODE.family
