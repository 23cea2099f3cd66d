"""A small general German to English word list for technical reports, with splitting of compounds."""

from __future__ import annotations

import re
from functools import cache

_PAIRS = """
abbrechen abort cancel|abbruch abort cancel|abfrage query|abfragen query|abgelaufen expired
abgeschaltet disabled off|ablage store|ablehnen reject refuse|abmelden logout|abschalten disable
abschnitt section|absturz crash|abstürzen crash|abteilung section|aktiv active
aktualisieren update refresh|aktualisierung update|alle all|alt old|anfang start begin|anfrage request
angabe option|anhang attachment|anhängen append attach|anker anchor|anlegen create|anmelden login
anmeldung login|anmerkung annotation|annahme accept|annehmen accept|anordnung layout|ansicht view
antwort response answer|anweisung statement|anwenden apply|anwendung application|anzahl count number
anzeige display|anzeigen display show|archiv archive|art kind type|attribut attribute|aufgabe task
aufruf call|aufrufen call|aufräumen cleanup teardown|auftrag order job task|ausblenden hide
ausdruck expression|ausführen execute run|ausführung execution|ausgabe output|ausgeben print output
ausgeschaltet disabled off|ausgewählt selected|auslassen skip omit|auslösen trigger raise
ausnahme exception|ausrichten align|ausschalten disable|auswahl selection|auswerten evaluate
auswertung evaluation|auszeichnung markup|automatisch automatic auto|basis base|baum tree
beachten respect|bedingung condition|beenden finish end close|befehl command|beginn start
beginnen begin start|benachrichtigung notification|benutzer user|benutzerdefiniert user defined custom
berechnen compute|berechnung computation|berechtigung permission|bereich range area|bericht report
beschreibbar writable|beschreibung description|beschränkung limit constraint|besitzer owner|bestand stock
bestellung order|betrag amount|betreten enter|bewegung move movement|bezeichner identifier
beziehung relation|bibliothek library|bild image picture|bildschirm screen|breite width|brief letter mail
datei file|daten data|datenbank database|datensatz record row|datum date|dauer duration
debugger debugger pdb|dienst service|doppelt duplicate double|drehung rotation|drucken print
durchlauf run pass|durchschnitt average mean|ebene level layer|echt real|eigenschaft property
einfach simple single|einfügen insert add|eingabe input|eingebaut builtin|eingeschaltet enabled on
einheit unit|einlesen read parse|einloggen login|einschalten enable|einstellung setting option config
eintrag entry|element element item|ende end|endlos infinite endless|entfernen remove delete
entfernung distance|entschlüsseln decrypt|entschlüsselung decryption|ereignis event|ergebnis result
erhalten receive get|erneut again retry|ersetzen replace|erstellen create|erwarten expect
erwartung expectation|erweitern extend|erweiterung extension plugin|erzeugen create generate|fach slot
falle trap|falsch wrong false|farbe color|fehlen missing|fehlend missing|fehler error bug
fehlermeldung error message|fehlgeschlagen failed|feld field|fenster window|fertig finished done
fest fixed|festlegen set define|filter filter|folge sequence|folgen follow|format format
fortschritt progress|frage question|freigabe release|freigeben release free|frist deadline timeout
funktion function|gebiet area zone|gegenstand item|gemeinsam common shared|generieren generate
gerät device|geräusch sound|geschwindigkeit speed|geschützt protected|gewicht weight|gitter grid
gleich equal same|gleichung equation|grafik graphic plot|grenze limit bound|grund reason|gruppe group
größe size|gültig valid|gültigkeit validity|haupt main|herunterladen download|hilfe help
hintergrund background|hinweis note hint|hinzufügen add|höhe height|importieren import|inhalt content
instanz instance|intervall interval|kanal channel|karte map card|kennung id identifier|kennwort password
kette chain|klammer bracket parenthesis|klasse class|klausel clause|knopf button|knoten node
konfiguration configuration config|konto account|kopf head header|kopie copy|kopieren copy
korrekt correct|laden load|ladung load|lager storage warehouse|lauf run|laufen run|laufzeit runtime
layout layout|leer empty blank|leeren clear empty|leitung line pipe|lesen read|letzte last
lieferung delivery|linie line|liste list|listung listing|löschen delete remove clear|lösung solution
markieren mark|markierung mark marker|maske mask|matrize matrix|mehrfach multiple|mehrzeilig multiline
meldung message warning|menge quantity set amount|merkmal feature|methode method
mitteilung message notification|modul module|muster pattern|nachricht message|name name|neu new
neustart restart|nummer number id|oberfläche interface ui|objekt object|ordner folder directory
ort location|paar pair|paket package|parameter parameter|pfad path|platz place slot
platzhalter placeholder|position position|preis price|probe test sample|profil profile
protokoll log protocol|prozess process|prüfen check verify validate|prüfung check|punkt point
quelle source|quelltext source|querverweis reference|rahmen frame border|rand margin border edge
rang rank|rechner computer host|recht permission right|rechte permission mode|rechtschreibung spelling
regel rule|registrieren register|reihe row series|reihenfolge order|rest remainder rest
richtung direction|rolle role|runde round|rückgabe return|rückgängig undo|satz set record sentence
schalter switch flag option|schicht layer|schleife loop|schließen close|schlüssel key
schnittstelle interface api|schreiben write|schrift font|schritt step|schutz protection|seite page side
senden send|server server|setzen set|sicher safe secure|sicherheit security|sicherung backup
sichtbar visible|sitzung session|sonderzeichen special character|sortieren sort order
sortierung sort order|spalte column|speicher memory storage|speichern save store|sperre lock
sperren lock block|sprache language|stamm stem|standard default|standort location|start start
starten start launch run|status status state|stelle place|steuer control tax|steuerung control
stoppen stop|strafe penalty|strecke route|struktur structure|stufe level stage|suche search
suchen search find|summe sum total|tabelle table|tag day|taste key button|teil part|teilen split share
test test|text text|thema topic theme|tief deep|titel title|tor gate|trennen separate split disconnect
trenner separator|typ type|uhr clock|umbenennen rename|umbruch wrap break|umfang scope
umgebung environment|umgehen bypass|umlaut umlaut|umleitung redirect|umwandeln convert
umwandlung conversion|unabhängig independent|unendlich infinite|ungültig invalid|unterbrechen interrupt
unterordner subfolder|unterschied difference|unterstützen support|untersuchen examine|ursprung origin
variable variable|veraltet deprecated|verarbeiten process handle|verarbeitung processing
verbinden connect join|verbindung connection|verbose verbose|vererbung inheritance|verfallen expire
vergleich compare|vergleichen compare|verhalten behavior|verhindern prevent|verknüpfung link join
verlassen leave exit|verlauf history|verlieren lose|verschieben move shift|verschlüsseln encrypt
verschlüsselung encryption crypto cipher|verschwinden disappear vanish|verschwunden missing gone
versetzen shift offset|version version|verstecken hide|verwaltung management manager
verweis reference link|verwenden use|verzeichnis directory folder|verzögerung delay
vollständig complete full|vorbereiten prepare|voreinstellung default|vorgabe default
vorgang operation process|vorhanden existing present|vorlage template|vorschau preview|vorzeichen sign
wachsen grow|wahl choice|warnung warning|warten wait|warteschlange queue|wechsel change switch
weg path way|weiterleiten redirect forward|weiterleitung redirect|wert value|wiederherstellen restore
wiederholen repeat retry|wiederholung repeat retry|winkel angle|wort word|wurzel root
wörterbuch dictionary|zahl number|zahlung payment|zeichen character sign|zeichenkette string
zeichnen draw plot|zeichnung drawing|zeiger pointer cursor|zeile line row|zeit time|zeitpunkt time
zeitraum period|zeitstempel timestamp|zeitzone timezone|zeitüberschreitung timeout|zelle cell
ziel target goal|zufall random|zufällig random|zugriff access|zulässig allowed|zuordnung mapping
zurück back return|zurücksetzen reset|zusammenfassung summary|zusammenführen merge|zusatz extra
zustand state|zuweisen assign|zuweisung assignment|zwischenspeicher cache buffer|zähler counter
ändern change modify update|änderung change|öffnen open|übergabe handover pass|überlauf overflow
übernehmen apply take|überprüfen check verify|überschreiben override overwrite|überschrift heading title
übersetzen translate compile|übersetzung translation|überspringen skip|übertragen transfer
übertragung transfer
"""

_STOP_WORDS = (
    "aber alle als also am an auch auf aus bei beim bin bis da dabei dadurch daher damit danach dann "
    "daran das dass dazu dem den denn der des die dies diese dieselbe diesem diesen dieser dieses "
    "doch dort du durch ein eine einem einen einer eines er erst es etwa für gar gibt habe haben hat "
    "hier hinter ich ihr im immer in innerhalb ist ja jede jedem jeden jeder jedes kann kein keine "
    "keinem keinen keiner kommt können lassen lässt man mehr mein mit nach nicht nichts noch nun nur "
    "ob obwohl oder ohne schon sehr sein seit selbst sich sie sind so sobald solche sonst statt "
    "trotzdem über um und uns unsere unserem unseren unter vom von vor wann war was weil weiter wenn "
    "wer werden wie wieder wir wird wo wobei wurde wurden zu zum zur zwar zwei zwischen daß ganz "
    "eigentlich "
)
STOP = frozenset(_STOP_WORDS.split())
"""German words of grammar."""


@cache
def _table() -> dict[str, tuple[str, ...]]:
    table: dict[str, tuple[str, ...]] = {}
    for entry in _PAIRS.replace("\n", "|").split("|"):
        words = entry.split()
        if len(words) > 1:
            table[words[0]] = tuple(words[1:])
    return table


_ENDINGS = (
    "ungen",
    "innen",
    "ern",
    "est",
    "tes",
    "ten",
    "te",
    "en",
    "em",
    "er",
    "es",
    "st",
    "n",
    "s",
    "e",
    "t",
)


def _lookup(word: str) -> tuple[str, ...]:
    table = _table()
    for form in (word, word + "en", word + "n"):
        if form in table:
            return table[form]
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            root = word[: -len(ending)]
            for form in (root, root + "en", root + "e", root + "n"):
                if form in table:
                    return table[form]
    participle = re.fullmatch(
        r"(ab|an|auf|aus|ein|um|zu|vor|nach|weiter|zurück|herunter)?ge(\w{3,}?)(?:t|en)", word
    )
    if participle:
        return table.get(f"{participle.group(1) or ''}{participle.group(2)}en", ())
    return ()


@cache
def translate(word: str) -> tuple[str, ...]:
    """Return English words for a German one, compounds part by part; empty when it is not known."""
    word = word.lower()
    found = _lookup(word)
    if found:
        return found
    for cut in range(len(word) - 3, 2, -1):
        head = _lookup(word[:cut]) or (_lookup(word[: cut - 1]) if word[cut - 1] in "sn" else ())
        if head and cut >= 3:
            tail = translate(word[cut:]) if len(word) - cut >= 3 else ()
            if tail:
                return head + tail
    return ()


_GERMAN = re.compile(
    r"\b(?:und|der|die|das|nicht|ist|wird|beim|eine[nrms]?|mit|nach|werden)\b", re.IGNORECASE
)


def is_german(text: str) -> bool:
    """Say whether a text reads as German by its words of grammar."""
    words = len(text.split())
    return words > 0 and len(_GERMAN.findall(text)) / words > 0.06
