"""The `#if` stack around a line of C or C++."""

from __future__ import annotations

import re

_DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b([^\n]*)", re.MULTILINE)


def conditions(text: str, offset: int) -> tuple[str, ...]:
    """Return the conditions that enclose the character at `offset`, outermost first.

    A branch after `#else` or `#elif` is shown with the condition it turns around, for example
    `#else of #if A`.
    """
    stack: list[str] = []
    for match in _DIRECTIVE.finditer(text):
        if match.start() >= offset:
            break
        word, rest = match.group(1), match.group(2).split("//")[0].split("/*")[0].strip()
        if word in {"if", "ifdef", "ifndef"}:
            stack.append(f"#{word} {rest}")
        elif stack and word == "elif":
            stack[-1] = f"#elif {rest} of {stack[-1].rsplit(' of ', 1)[-1]}"
        elif stack and word == "else":
            stack[-1] = f"#else of {stack[-1].rsplit(' of ', 1)[-1]}"
        elif stack:
            stack.pop()
    return tuple(stack)
