"""The mechanism families the analyst lets compete; each names what it predicts and what would refute it.

A family is recognised later by the word before the colon in its title. The texts speak of the case only
through its own words (`subject`, `focus`), never of a project.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Words:
    """The texts of a family in one language."""

    label: str
    title: str
    mechanism: str
    rationale: str
    distinction: str
    expected: str
    falsifying: str
    question: str


@dataclass(frozen=True, slots=True)
class Mechanism:
    """One family in both languages."""

    family: str
    english: Words
    german: Words

    def words(self, *, german: bool) -> Words:
        """Return the texts in the report's language."""
        return self.german if german else self.english


CODE = Mechanism(
    "Code",
    Words(
        "Code",
        "the code behind this decides wrongly ({subject})",
        "A condition, comparison, order of steps or computed value in the function that handles the "
        "situation is wrong, so that this happens: {focus}",
        "The report describes a behaviour that the handling code itself decides.",
        "Data and configuration are as they should be; only the code's decision is at fault.",
        "a function that handles the reported situation and whose condition, comparison or order "
        "does not fit the expected behaviour",
        "the handling code gives the expected result when it is called with the very values of the "
        "affected attempt",
        "Which function decides the reported behaviour, and with which condition?",
    ),
    Words(
        "Code",
        "der Code dahinter entscheidet falsch ({subject})",
        "Eine Bedingung, ein Vergleich, eine Reihenfolge oder ein berechneter Wert in der "
        "zuständigen Funktion ist falsch, sodass dies geschieht: {focus}",
        "Der Bericht beschreibt ein Verhalten, das der zuständige Code selbst entscheidet.",
        "Daten und Konfiguration sind in Ordnung; nur die Entscheidung des Codes ist falsch.",
        "eine zuständige Funktion, deren Bedingung, Vergleich oder Reihenfolge nicht zum erwarteten "
        "Verhalten passt",
        "der zuständige Code liefert mit genau den Werten des betroffenen Versuchs das erwartete Ergebnis",
        "Welche Funktion entscheidet das beschriebene Verhalten, und mit welcher Bedingung?",
    ),
)

DATA = Mechanism(
    "Data",
    Words(
        "Data",
        "a record or link that this needs is missing or wrong ({subject})",
        "The code reads stored records to handle the situation; a record, link or later stage of the "
        "affected item is absent or holds a wrong value, so that this happens: {focus}",
        "Only some items are affected, or the behaviour stops at a stage that records describe.",
        "The same code works for sibling items whose records are complete.",
        "sibling items have a record or value that the affected item lacks",
        "the affected item has every record that working siblings have, with values alike",
        "Which records does the affected item have at each stage, compared with working ones?",
    ),
    Words(
        "Daten",
        "ein nötiger Datensatz oder Verweis fehlt oder ist falsch ({subject})",
        "Der Code liest gespeicherte Datensätze; ein Datensatz, Verweis oder eine spätere Stufe des "
        "betroffenen Gegenstands fehlt oder hat einen falschen Wert, sodass dies geschieht: {focus}",
        "Nur manche Gegenstände sind betroffen, oder es endet an einer Stufe, die Datensätze beschreiben.",
        "Derselbe Code arbeitet richtig für Geschwister, deren Datensätze vollständig sind.",
        "Geschwister haben einen Datensatz oder Wert, der dem betroffenen Gegenstand fehlt",
        "der betroffene Gegenstand hat jeden Datensatz funktionierender Geschwister, mit gleichen Werten",
        "Welche Datensätze hat der betroffene Gegenstand auf jeder Stufe, verglichen mit funktionierenden?",
    ),
)

CONFIGURATION = Mechanism(
    "Configuration",
    Words(
        "Configuration",
        "a configured value produces this ({subject})",
        "The code obeys a configured value, and the value set in the affected installation differs "
        "from what the expectation takes for granted, so that this happens: {focus}",
        "The same code and data behave differently under another configured value.",
        "Neither the code nor the records are at fault; a setting is.",
        "a value in force that differs from its default and governs the reported behaviour",
        "the governing value in force equals its default or the expected value",
        "Which setting governs the reported behaviour, and what is its value there?",
    ),
    Words(
        "Konfiguration",
        "ein eingestellter Wert bewirkt das ({subject})",
        "Der Code befolgt einen eingestellten Wert, und der Wert der betroffenen Installation weicht "
        "von dem ab, was die Erwartung voraussetzt, sodass dies geschieht: {focus}",
        "Derselbe Code mit denselben Daten verhält sich unter einem anderen Wert anders.",
        "Weder Code noch Datensätze sind schuld, sondern eine Einstellung.",
        "ein geltender Wert, der von seiner Vorgabe abweicht und das Verhalten bestimmt",
        "der bestimmende Wert entspricht der Vorgabe oder dem erwarteten Wert",
        "Welche Einstellung bestimmt das Verhalten, und welchen Wert hat sie dort?",
    ),
)

UPSTREAM = Mechanism(
    "Upstream",
    Words(
        "Upstream",
        "an earlier step hands on a wrong or incomplete value ({subject})",
        "The place where the fault shows is correct; a caller or an earlier step hands over a value "
        "that it should have converted, checked or completed, so that this happens: {focus}",
        "The place where a fault shows need not be the place where it is made.",
        "The faulty decision lies in a caller or producer, not where the symptom appears.",
        "a caller that passes the value on without the conversion or check that its siblings make",
        "every caller hands over a value the failing place is documented to accept",
        "Who calls the place where the fault shows, and with what?",
    ),
    Words(
        "Vorstufe",
        "ein früherer Schritt übergibt einen falschen oder unvollständigen Wert ({subject})",
        "Die Stelle, an der sich der Fehler zeigt, ist richtig; ein Aufrufer übergibt einen Wert, "
        "den er hätte umwandeln, prüfen oder ergänzen müssen, sodass dies geschieht: {focus}",
        "Wo sich ein Fehler zeigt, muss er nicht entstehen.",
        "Die falsche Entscheidung liegt bei einem Aufrufer oder Erzeuger, nicht dort, wo sich das "
        "Symptom zeigt.",
        "ein Aufrufer, der den Wert ohne die Umwandlung oder Prüfung weitergibt, die andere vornehmen",
        "jeder Aufrufer übergibt einen Wert, den die Stelle laut Beschreibung annimmt",
        "Wer ruft die Stelle auf, an der sich der Fehler zeigt, und womit?",
    ),
)

INTENDED = Mechanism(
    "Intended",
    Words(
        "Intended",
        "the behaviour is as designed, or the premise does not hold ({subject})",
        "The described behaviour follows from documented design or from how the feature was used, or "
        "the feature that the report takes for granted does not exist in this version, so that this "
        "happens: {focus}",
        "A report states an expectation; the design may state another.",
        "Nothing is broken; the expectation or the premise differs from what the version provides.",
        "a passage of documentation, a check or a logged attempt that shows this behaviour as meant",
        "documentation or sibling code states the expected behaviour as meant",
        "Where is the expected behaviour promised for this version?",
    ),
    Words(
        "Absicht",
        "das Verhalten ist vorgesehen, oder die Voraussetzung stimmt nicht ({subject})",
        "Das Verhalten folgt aus der Auslegung oder aus der Benutzung, oder was der Bericht "
        "voraussetzt, gibt es in dieser Version nicht, sodass dies geschieht: {focus}",
        "Ein Bericht nennt eine Erwartung; die Auslegung kann eine andere sein.",
        "Nichts ist kaputt; Erwartung oder Voraussetzung weichen von dem ab, was die Version bietet.",
        "eine Textstelle, eine Prüfung oder ein protokollierter Versuch, die das Verhalten als "
        "gewollt zeigen",
        "Dokumentation oder vergleichbarer Code nennt das erwartete Verhalten als gewollt",
        "Wo ist das erwartete Verhalten für diese Version zugesagt?",
    ),
)

ENVIRONMENT = Mechanism(
    "Environment",
    Words(
        "Environment",
        "something around the program makes the difference ({subject})",
        "A version, platform, timing or resource outside the program's own code and data makes the "
        "difference between the working and the failing run, so that this happens: {focus}",
        "The report names an environment, and a second environment was not compared.",
        "The same code, data and configuration work elsewhere.",
        "a log line or version note that ties the fault to the environment",
        "the fault follows from the code and the data alone",
        "Does the fault appear in a second environment?",
    ),
    Words(
        "Umgebung",
        "etwas außerhalb des Programms macht den Unterschied ({subject})",
        "Eine Version, Plattform, ein Zeitverhalten oder eine Ressource außerhalb von Code und Daten "
        "macht den Unterschied zwischen gutem und schlechtem Lauf, sodass dies geschieht: {focus}",
        "Der Bericht nennt eine Umgebung, und keine zweite wurde verglichen.",
        "Derselbe Code mit denselben Daten und derselben Konfiguration arbeitet anderswo richtig.",
        "eine Protokollzeile oder Versionsnotiz, die den Fehler an die Umgebung bindet",
        "der Fehler folgt allein aus Code und Daten",
        "Tritt der Fehler in einer zweiten Umgebung auf?",
    ),
)

_ALL = (CODE, DATA, CONFIGURATION, UPSTREAM, INTENDED, ENVIRONMENT)
_LABELS = {words.label: m.family for m in _ALL for words in (m.english, m.german)}
_FOREIGN = (
    ("Configuration", ("config", "setting", "configured", "einstell", "konfigur", "option")),
    ("Data", ("row", "record", "table", "data", "database", "datensatz", "zeile", "tabelle", "daten")),
    ("Intended", ("intended", "by design", "premise", "user error", "expectation", "gewollt", "absicht")),
    ("Environment", ("environment", "platform", "umgebung", "plattform", "race", "timing")),
    ("Upstream", ("caller", "upstream", "earlier step", "aufrufer")),
)  # fmt: skip


def candidates(roles: frozenset[str], count: int) -> list[Mechanism]:
    """Return `count` families in the order in which they shall compete for inputs of these roles."""
    if "diagnostics" in roles and "source" in roles:
        order = [CODE, DATA, CONFIGURATION, INTENDED, UPSTREAM, ENVIRONMENT]
    elif "diagnostics" in roles:
        order = [DATA, CONFIGURATION, INTENDED, ENVIRONMENT, CODE, UPSTREAM]
    else:
        order = [CODE, UPSTREAM, INTENDED, ENVIRONMENT, DATA, CONFIGURATION]
    return order[:count]


def is_own(title: str) -> bool:
    """Say whether a hypothesis was proposed by the analyst: its title begins with a family's label."""
    return ":" in title and title.split(":", 1)[0].strip() in _LABELS


def family_of(title: str) -> str:
    """Return the family of a hypothesis title; another author's is read from its words, `Code` by default."""
    label = title.split(":", 1)[0].strip()
    if is_own(title):
        return _LABELS[label]
    folded = title.casefold()
    return next((family for family, words in _FOREIGN if any(word in folded for word in words)), CODE.family)
