"""The words by which reports in English and German name their sections, and how a heading is matched.

General vocabulary of bug trackers and issue templates; nothing here belongs to any project.
"""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum


class Section(StrEnum):
    """What a section of a report is about."""

    OBSERVED = "observed"
    STAGE = "stage"
    EXPECTED = "expected"
    EXTERNAL = "external"
    STEPS = "steps"
    ENVIRONMENT = "environment"
    ASSUMPTION = "assumption"
    TECHNICAL = "technical"
    COMMENT = "comment"
    REPORT = "report"
    TITLE = "title"


_PHRASES: dict[Section, str] = {
    Section.OBSERVED: """
        observed | observation | observations | observed behavior | observed behaviour
        observed result | actual | actual behavior | actual behaviour | actual result
        actual results | actual output | current behavior | current behaviour | current
        current result | what happens | what happened | what actually happens
        what actually happened | what happens instead | what do you see | what did you see
        describe the bug | bug description | problem | problem description | the problem | issue
        issue description | symptom | symptoms | bug | the bug | result | results | behavior
        behaviour | failure | impact | history | what is wrong | what went wrong
        what is the problem | what i see | what i saw | ist | ist zustand | ist verhalten
        beobachtet | beobachtung | beobachtungen | beobachtetes verhalten | aktuelles verhalten
        aktuell | aktueller zustand | tatsächlich | tatsächliches verhalten | tatsächliches ergebnis
        fehlerbild | fehlerbeschreibung | problembeschreibung | was passiert | was ist passiert
        was passiert stattdessen | symptom | symptome | fehler | fehlverhalten | ergebnis
        verhalten | auswirkung | verlauf""",
    Section.STAGE: """
        failure stage | stage | stage of failure | first divergence | first known divergence
        where it diverges | where it first diverges | stage where it first diverges
        first deviation | fehlerstufe | stufe | erste abweichung | erste bekannte abweichung
        stelle der abweichung | ab wann es abweicht""",
    Section.EXPECTED: """
        expected | expectation | expectations | expected behavior | expected behaviour
        expected result | expected results | expected output | expected outcome | what should happen
        what i expected | what did you expect | what did you expect to happen
        what you expected to happen | what you expected | what do you expect
        what should have happened | desired behavior | desired behaviour | intended behavior
        intended behaviour | should | correct behavior | correct behaviour | soll | soll zustand
        soll verhalten | erwartet | erwartung | erwartungen | erwartetes verhalten
        erwartetes ergebnis | gewünschtes verhalten | was sollte passieren
        was hätte passieren sollen | was passieren sollte | was erwartet wird | richtiges verhalten
        korrektes verhalten""",
    Section.EXTERNAL: """
        proof | reference | references | reference behavior | reference behaviour
        original behavior | original behaviour | external reference | external expectation
        specification | official behavior | official behaviour | how the original behaves
        documentation says | beleg | belege | nachweis | nachweise | referenz | referenzen | vorbild
        originalverhalten | verhalten im original | spezifikation | quelle | quellen
        externe erwartung""",
    Section.STEPS: """
        steps | step | steps to reproduce | steps to reproduce the problem
        steps to reproduce the behavior | steps to reproduce the behaviour | step to reproduce
        how to reproduce | to reproduce | reproduce | reproduction | reproduction steps
        reproducing | reproducer | minimal example | minimal reproducer | minimal reproduction
        minimal reproducible example | minimal complete verifiable example | mcve | mwe | mre
        example | code example | code sample | test case | testcase | how to repeat | repro
        repro steps | how can we reproduce it | code for reproduction | minimal code example
        sample code | script | schritte | schritt | schritte zur reproduktion
        schritte zum nachstellen | schritte zum reproduzieren | reproduktion | reproduktionsschritte
        reproduzieren | vorgehen | vorgehensweise | nachstellen | nachvollziehen
        so lässt es sich nachstellen | wie nachstellen | ablauf | testfall | testschritte | beispiel
        minimalbeispiel | beispielcode""",
    Section.ENVIRONMENT: """
        environment | environment information | environment info | environment details | env
        version | versions | version information | version info | version used | versions used
        affected version | affected versions | software versions | installed versions | system
        system information | system info | system details | platform | setup | configuration
        config | my environment | your environment | operating system | os | python version
        package versions | dependencies | installation | hardware | build | builds | revision
        revisions | core revision | commit | client | client version | server version
        database version | meta | metadata | plugins | modules | custom changes | specs
        tested with | context | umgebung | testumgebung | systemumgebung | version | versionen
        softwareversionen | betroffene version | betroffene versionen | system | systeminformationen
        plattform | konfiguration | betriebssystem | aufbau | stand | revision | build | einrichtung
        getestet mit | abhängigkeiten | module | installation""",
    Section.ASSUMPTION: """
        assumption | assumptions | my assumption | guess | my guess | suspicion | suspicions
        suspected cause | suspected root cause | possible cause | possible causes | probable cause
        likely cause | potential cause | presumed cause | cause | root cause | reason | analysis
        my analysis | initial analysis | hypothesis | hypotheses | theory | my theory | diagnosis
        speculation | thoughts | my thoughts | ideas | idea | fix | proposed fix | possible fix
        suggested fix | suggested fixes | potential fix | quick fix | fix suggestion | proposal
        proposed solution | possible solution | suggested solution | solution | solutions
        suggestion | suggestions | proposed change | proposed changes | patch | proposed patch
        suggested patch | what i think | what we think | where i think it breaks | tester assumption
        tester assumptions | vermutung | vermutungen | meine vermutung | annahme | annahmen
        testerannahme | testerannahmen | annahme des testers | annahmen des testers | verdacht
        mein verdacht | vermutete ursache | mögliche ursache | mögliche ursachen
        wahrscheinliche ursache | ursache | ursachen | analyse | meine analyse | hypothese | theorie
        diagnose | einschätzung | meine einschätzung | idee | ideen | lösung | lösungsvorschlag
        lösungsvorschläge | lösungsidee | mögliche lösung | vorschlag | vorschläge | korrektur
        korrekturvorschlag | behebung | behebungsvorschlag | fix vorschlag | reparaturvorschlag
        änderungsvorschlag | spekulation""",
    Section.TECHNICAL: """
        log | logs | log output | log excerpt | log file | log files | relevant log output
        server log | crash log | crash | crash dump | dump | stack trace | stacktrace | stack
        traceback | backtrace | call stack | callstack | output | console output | terminal output
        error | errors | error message | error messages | error output | error log | exception
        full traceback | full output | ids | id | entity ids | entities | links | frames
        logausgabe | logauszug | protokoll | protokolle | fehlermeldung | fehlermeldungen | ausgabe
        ausgaben | konsolenausgabe | absturz | absturzprotokoll | stapelverfolgung | aufrufstapel
        ausnahme | kennungen | betroffene ids | betroffene objekte | verweise""",
    Section.COMMENT: """
        comment | comments | note | notes | tester comment | tester comments | tester notes | remark
        remarks | additional context | additional information | additional info | additional notes
        additional details | further information | more information | other information | other
        misc | anything else | update | addendum | edit | screenshots | screenshot | attachments
        video | workaround | workarounds | frequency | related issues | related | kommentar
        kommentare | anmerkung | anmerkungen | bemerkung | bemerkungen | hinweis | hinweise | notiz
        notizen | nachtrag | ergänzung | ergänzungen | zusätzliche informationen
        weitere informationen | zusatzinformationen | sonstiges | bildschirmfotos | anhang | anhänge
        umgehung | häufigkeit""",
    Section.REPORT: """
        description | summary | overview | details | report | bug report | introduction | background
        body | beschreibung | zusammenfassung | überblick | bericht | fehlerbericht | einleitung
        hintergrund | details""",
    Section.TITLE: "title | subject | headline | titel | betreff | überschrift",
}


def _normal(text: str) -> str:
    """Return a heading's words: NFC, lower case, without numbering, emphasis, punctuation and emoji."""
    text = unicodedata.normalize("NFC", text).casefold()
    text = re.sub(r"\([^)]*\)|\[[^\]]*\]|<[^>]*>|:[a-z_]+:", " ", text)
    text = re.sub(r"^\W*(?:\d{1,2}|[a-h])[.)]\s+", "", text)
    return " ".join(re.findall(r"[^\W\d_]+", text))


def _phrases() -> dict[str, Section]:
    found: dict[str, Section] = {}
    for section, words in _PHRASES.items():
        for line in words.split("\n"):
            for phrase in line.split("|"):
                if phrase.strip():
                    found.setdefault(_normal(phrase), section)
    return found


_BY_PHRASE = _phrases()
_LEADING = frozenset("the a an my our your der die das ein eine mein unser dein ihr".split())  # noqa: SIM905 - words


_MAX_HEADING = 200
"""Characters of a heading or label; what is longer is no name of a section."""


def section_of(heading: str) -> Section | None:
    """Return the section that a heading or label names, or None when it is none of ours.

    Whole phrases only: `Expected behaviour (as in 2.0)` matches, `Expected to crash soon` does not.
    """
    if len(heading) > _MAX_HEADING:
        return None
    words = _normal(heading).split()
    if not words or len(words) > 8:
        return None
    for candidate in (words, words[1:] if words[0] in _LEADING else []):
        found = _BY_PHRASE.get(" ".join(candidate))
        if found is not None:
            return found
    # `Observed / Ist`, `Actual result - what happened`
    parts = [part for part in re.split(r"\s*[/|–—]\s*|\s-\s", heading) if part.strip()]
    if len(parts) > 1:
        named = {_BY_PHRASE.get(_normal(part)) for part in parts}
        if len(named) == 1:
            return named.pop()
    return None


_PLACEHOLDER = re.compile(
    r"(?:_?no response_?|n/?a|none|tbd|todo|-+|\.{2,}|keine(?: angabe)?|k\.? ?a\.?|nichts|\?+|"
    r"a clear and concise description of .*|please (?:describe|provide|fill|enter|add|paste)\b.*|"
    r"(?:describe|enter|insert|add|paste|write|fill in)\b.{0,80}\bhere\b.*|"
    r"\[?(?:e\.g\.|z\. ?b\.).*\]?|bitte (?:beschreiben|ausfüllen|angeben|eintragen)\b.*|"
    r"(?:1|2|3)\.|- \[ ?\].*|go to '\.\.\.'|click on '\.{3,}'.*|scroll down to '\.{3,}'.*|see error)",
    re.IGNORECASE | re.DOTALL,
)


def is_placeholder(text: str) -> bool:
    """True for text that the template left behind and nobody replaced."""
    return _PLACEHOLDER.fullmatch(text.strip().strip("*_").strip()) is not None
