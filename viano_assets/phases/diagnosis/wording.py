"""The controller's own words in the language of the report: English, German.

The English sentence is the key, so that code and template stay readable. Text of a report, a model or a tool
is never translated. Another language than German is served in English.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

GERMAN: Mapping[str, str] = {
    "None of {count} final answers passed the checks, so no answer was accepted.": (
        "Keine von {count} abschließenden Antworten hat die Prüfungen bestanden; keine wurde angenommen."
    ),
    "No accepted answer evaluates it.": "Keine angenommene Antwort bewertet sie.",
    "No accepted answer evaluates it; its end state in the investigation stands.": (
        "Keine angenommene Antwort bewertet sie; es gilt ihr Endstand aus der Untersuchung."
    ),
    "The stored evidence has not been evaluated as a whole.": (
        "Die gespeicherten Belege sind nicht im Ganzen bewertet worden."
    ),
    "Read the stored evidence and the end states of the hypotheses.": (
        "Die gespeicherten Belege und die Endstände der Hypothesen lesen."
    ),
    "Read the rejected answers and their issues, then reopen the case with another model.": (
        "Die abgelehnten Antworten und ihre Beanstandungen lesen, dann den Fall mit einem anderen Modell "
        "neu öffnen."
    ),
    "Not in the report: {text}": "Nicht im Bericht: {text}",
    "“{text}”": "„{text}“",
    "Is this to be seen: {finding}? If so, {one} falls, the last that stands.": (
        "Ist das zu sehen: {finding}? Wenn ja, fällt mit {one} die letzte, die noch steht."
    ),
    "Can this be seen: {finding}? If so, it speaks against {one} and leaves {two}; if not, {one} stands.": (
        "Ist das zu sehen: {finding}? Wenn ja, spricht es gegen {one} und es bleibt {two}; wenn nein, "
        "bleibt {one} bestehen."
    ),
    "Can this be seen: {finding}? If so, it speaks for {two}; if not, {one} stands.": (
        "Ist das zu sehen: {finding}? Wenn ja, spricht es für {two}; wenn nein, bleibt {one} bestehen."
    ),
    "Which observation is expected of {one} and excluded by {two}?": (
        "Welche Beobachtung ist nach {one} zu erwarten und nach {two} ausgeschlossen?"
    ),
    "confirmed: {name}": "bestätigt: {name}",
    "inconclusive: {kind}": "kein eindeutiges Ergebnis: {kind}",
    "Cause confirmed": "Ursache bestätigt",
    "Inconclusive: {kind}": "Kein eindeutiges Ergebnis: {kind}",
    " (requested: {level})": " (verlangt: {level})",
    "reliability of this level: {status}": "Verlässlichkeit dieser Stufe: {status}",
    "reliability of this level: {right} of {n} known cases right": (
        "Verlässlichkeit dieser Stufe: {right} von {n} bekannten Fällen richtig"
    ),
    "reliability of this level: {right} of {n} known cases right (95 % interval {low} to {high} %)": (
        "Verlässlichkeit dieser Stufe: {right} von {n} bekannten Fällen richtig "
        "(95-%-Intervall {low} bis {high} %)"
    ),
    "reliability of this level: {right} of {n} known cases right, estimated {rate} % "
    "(95 % interval {low} to {high} %)": (
        "Verlässlichkeit dieser Stufe: {right} von {n} bekannten Fällen richtig, geschätzt {rate} % "
        "(95-%-Intervall {low} bis {high} %)"
    ),
    "reliability of this level: {right} of {n} known cases right; together with {others} {all_right} of "
    "{all}: estimated {rate} % (95 % interval {low} to {high} %)": (
        "Verlässlichkeit dieser Stufe: {right} von {n} bekannten Fällen richtig; zusammen mit {others} "
        "{all_right} von {all}: geschätzt {rate} % (95-%-Intervall {low} bis {high} %)"
    ),
    "The offline analyst gave no valid evaluation to compare with.": (
        "Der Offline-Analyst gab keine gültige Bewertung zum Vergleich."
    ),
    "The offline analyst comes to the same result.": "Der Offline-Analyst kommt zum selben Ergebnis.",
    "The offline analyst differs in {names}: {status} {chosen}": (
        "Der Offline-Analyst weicht ab in {names}: {status} {chosen}"
    ),
    "The checks would pass without any single one of the {count} cited records.": (
        "Die Prüfungen wären auch ohne jeden einzelnen der {count} zitierten Belege bestanden."
    ),
    "Without {names} the checks would not pass; without any other single record they would.": (
        "Ohne {names} wären die Prüfungen nicht bestanden, ohne jeden anderen einzelnen Beleg schon."
    ),
    "Case {case}, analysis revision {revision}": "Fall {case}, Analyserevision {revision}",
    "Confidence: {text}": "Konfidenz: {text}",
    "The question that would decide it": "Die Frage, die es entscheiden würde",
    "What a person should do next": "Was ein Mensch als Nächstes tun sollte",
    "Where": "Wo",
    "Where to look first (a ranking, not a claim)": (
        "Wo zuerst nachzusehen ist (eine Rangfolge, keine Behauptung)"
    ),
    "kind": "Art",
    "place": "Ort",
    "basis": "Grundlage",
    "Hypotheses": "Hypothesen",
    "For": "Dafür",
    "Against": "Dagegen",
    "nothing": "nichts",
    "Details": "Einzelheiten",
    "Mechanism": "Mechanismus",
    "Contradiction": "Widerspruch",
    "Countercheck adequate": "Gegenprobe ausreichend",
    "Countercheck not adequate": "Gegenprobe nicht ausreichend",
    "Not looked at": "Nicht angesehen",
    "End of the investigation: {status}, {reason}, confidence {level}": (
        "Ende der Untersuchung: {status}, {reason}, Konfidenz {level}"
    ),
    "Open question": "Offene Frage",
    "Evidence": "Belege",
    "carries the cause": "trägt die Ursache",
    "1 more line": "1 weitere Zeile",
    "1 further line is stored in the package.": "1 weitere Zeile ist im Paket gespeichert.",
    "{count} more lines": "{count} weitere Zeilen",
    "{count} further lines are stored in the package.": ("{count} weitere Zeilen sind im Paket gespeichert."),
    "How it was looked for: {tool}": "Wie gesucht wurde: {tool}",
    "Limited by: {cause}": "Begrenzt durch: {cause}",
    "Remaining uncertainty": "Verbleibende Unsicherheit",
    "Not examined": "Nicht untersucht",
    "How firm it is": "Wie fest es steht",
    "{tool} was {state}: {purpose}": "{tool}: {state} ({purpose})",
    "{tool} was {state} ({cause}): {purpose}": "{tool}: {state}, {cause} ({purpose})",
    "the results of {tool} were never judged for {hypothesis}": (
        "die Ergebnisse von {tool} wurden für {hypothesis} nie beurteilt"
    ),
    "{hypothesis} was never judged by evidence": "{hypothesis} wurde nie an Belegen beurteilt",
    "{hypothesis} was never judged in the investigation; the final evaluation cites {names}": (
        "{hypothesis} wurde in der Untersuchung nie beurteilt; die abschließende Bewertung zitiert {names}"
    ),
    "nothing was taken from {path}": "nichts wurde aus {path} entnommen",
    "read neither as text nor as tables: {path}": "weder als Text noch als Tabellen gelesen: {path}",
    "statements of the dumps that were not applied: {path}": (
        "nicht angewandte Anweisungen der Dumps: {path}"
    ),
    "{tool} was never asked": "{tool} wurde nie gefragt",
    "This no longer happens: {text}": "Das geschieht nicht mehr: {text}",
    "Carry out the reported steps: this is no longer seen: {text}": (
        "Nach den gemeldeten Schritten ist das nicht mehr zu sehen: {text}"
    ),
    "Bring about the reported situation: this is no longer seen: {text}": (
        "In der gemeldeten Lage ist das nicht mehr zu sehen: {text}"
    ),
    "Carry out the reported steps: this is seen: {text}": (
        "Nach den gemeldeten Schritten ist das zu sehen: {text}"
    ),
    "Bring about the reported situation: this is seen: {text}": (
        "In der gemeldeten Lage ist das zu sehen: {text}"
    ),
    "The cause is gone at {place}: {summary}": "Die Ursache ist behoben, Ort {place}: {summary}",
    "This was tested and is not the cause; it must not become one: {title}.": (
        "Das wurde geprüft und ist nicht die Ursache; es darf auch keine werden: {title}."
    ),
    "What was read at {place} is no part of the cause.": (
        "Was unter {place} gelesen wurde, gehört nicht zur Ursache."
    ),
    "Nothing is changed for this unconfirmed assumption alone: {text}": (
        "Allein wegen dieser unbestätigten Annahme wird nichts geändert: {text}"
    ),
    "Change request: {title}": "Änderungsauftrag: {title}",
    "Defect": "Fehler",
    "Confidence: {level}. Evidence: {names}.": "Konfidenz: {level}. Belege: {names}.",
    "Affected": "Betroffen",
    "Required behaviour": "Gefordertes Verhalten",
    "Acceptance checks": "Abnahmeprüfungen",
    "Regressions to guard": "Was nicht zurückfallen darf",
    "What must not change": "Was unverändert bleibt",
    "no single place": "kein einzelner Ort",
    "Answers of the model that the checks rejected: {count}.": (
        "Antworten des Modells, die die Prüfungen abgelehnt haben: {count}."
    ),
}
"""English template to German template; both have the same fields."""

GERMAN_WORDS: Mapping[str, str] = {
    "abandoned": "aufgegeben",
    "budget_exhausted": "Budget verbraucht",
    "cited": "zitiert",
    "closed": "abgeschlossen",
    "complete": "vollständig",
    "confirmed": "bestätigt",
    "file": "Datei",
    "finished": "beendet",
    "inconclusive": "ohne eindeutiges Ergebnis",
    "inconclusive_kind": "Art des offenen Ergebnisses",
    "insufficient_information": "zu wenig Information",
    "intended_behaviour": "beabsichtigtes Verhalten",
    "invalid_answers": "ungültige Antworten",
    "investigating": "in Untersuchung",
    "loop_finished": "Untersuchung beendet",
    "low_information": "zu wenig neue Information",
    "new": "neu",
    "not measured": "nicht gemessen",
    "partial": "teilweise",
    "place": "Ort",
    "plausible": "plausibel",
    "premise_contradicted": "Annahme widerlegt",
    "rejected": "verworfen",
    "retrieved": "gefunden",
    "row": "Tabellenzeile",
    "selected_hypothesis": "gewählte Hypothese",
    "status": "Status",
    "strongly_supported": "stark gestützt",
    "supported": "gestützt",
    "symbol": "Symbol",
    "table": "Tabelle",
    "truncated": "abgeschnitten",
    "unassessed": "nicht bewertet",
    "unavailable": "nicht verfügbar",
    "undecided": "mehrere Erklärungen bleiben möglich",
    "undetermined": "unbestimmt",
    "weakened": "geschwächt",
}
"""Levels, verdicts, kinds and states."""


class Wording:
    """Says the controller's sentences and words in one language."""

    def __init__(self, language: str) -> None:
        self.language = "de" if language.partition("-")[0] == "de" else "en"

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Wording:
        """Return the wording of a result document."""
        return cls(document["language"])

    def __call__(self, text: str, /, **values: object) -> str:
        """Return a sentence with its fields filled in."""
        template = GERMAN[text] if self.language == "de" else text
        return template.format(**values) if values else template

    def words(self, value: str) -> str:
        """Return a level, verdict, kind or state as words."""
        plain = value.replace("_", " ")
        return GERMAN_WORDS.get(value, plain) if self.language == "de" else plain
