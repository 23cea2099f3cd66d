"""Recognises text that addresses the program reading the report instead of describing a defect.

Such text is kept and can be quoted, but it is typed so that no statement, hypothesis or verdict can stand
on it. The recogniser is a courtesy to the reader of the case, not the defence: the defence is that no
text of a case is ever carried out.
"""

from __future__ import annotations

import re

_PATTERNS = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b[^.\n]{0,40}\b(?:previous|prior|above|earlier|all|your|the\s+system)\b[^.\n]{0,30}"
    r"\b(?:instructions?|rules?|prompts?|messages?|guidelines?|contract)\b"
    r"|\b(?:ignoriere|vergiss|missachte)\b[^.\n]{0,40}\b(?:anweisung|regel|vorgabe|prompt)\w*"
    r"|(?<!-)-{2,}+\s{0,9}(?:END|BEGIN|ENDE|BEGINN)\s+(?:OF|DES)\s+(?:THE\s+)?(?:REPORT|BERICHT\w*|INPUT|DATA|PROMPT|CASE|DOCUMENT)"
    r"|\b(?:set|change|raise|report|output|return|setze|melde)\b[^.\n]{0,30}\b(?:confidence|verdict|status|konfidenz)\b[^.\n]{0,20}"
    r"\b(?:confirmed|strongly_supported|supported|100|high|bestätigt)\b"
    r"|<\|?(?:im_start|im_end|system|assistant|endoftext|begin_of_text)\|?>|\[/?INST\]|<<SYS>>"
    r"|^[ \t]{0,20}(?:system|assistant)\s*:\s*\S"
    r"|\byou\s+are\s+(?:now|an?\s+(?:ai|assistant|language\s+model|helpful))\b|\bas\s+an?\s+(?:ai|language\s+model)\b"
    r"|\b(?:system\s+prompt|new\s+instructions?|developer\s+message)\b\s*[:.]"
    r"|\b(?:do\s+not|don['’]t|never)\s+(?:investigate|mention|report|cite|look\s+at|run)\b[^.\n]{0,40}\b(?:hypothes\w+|evidence|this\s+file|other)\b"
    r"|\bread\s+\.\./\S+",
    re.IGNORECASE | re.MULTILINE,
)


def is_instruction_like(text: str) -> bool:
    """True when the text tries to steer its reader."""
    return _PATTERNS.search(text) is not None
