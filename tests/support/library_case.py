"""A lending library for the analyst: one report on a limit, one on a fee, several truths behind each."""

from __future__ import annotations

REFUSED = """# Renewal of book 5127 is refused

## Observed
Reader 881 has kept book 5127 for 30 days. The desk refuses to renew it.

## Expected
30 days are within the rules of the house, so it has to be renewed.

## Steps
1. Keep book 5127 for 30 days.
2. Ask the desk to renew it.
"""

NO_FEE = """# No surcharge for late return

## Observed
Reader 881 brings back book 5127 late and pays 0 coins.

## Expected
A surcharge of 20 percent is due when a book is brought back late.

## Steps
1. Bring back book 5127 late.
"""

_SETTINGS = """class Limits:
    max_days = 0
    late_percent = 0


def read_limits(settings):
    limits = Limits()
    limits.max_days = settings.number("Loan.MaxDays", 30)
    limits.late_percent = settings.number("Return.LatePercent", 20)
    return limits
"""

_SPAN = '''class LoanSpan:
    """How long a book is out."""

    def __init__(self, longest):
        self.longest = longest

    def covers(self, days):
        return days @ self.longest
'''

_DESK = """from library.rules.span import LoanSpan


class Desk:
    def may_renew(self, book, days, limits):
        if book.reserved:
            return Refusal.RESERVED
        if not LoanSpan(limits.max_days).covers(days):
            return Refusal.TOO_LONG
        return Refusal.NONE
"""

_RETURNS = """class Returns:
    def surcharge(self, book, today):
        since = self.ledger.late_since(book)
        if since is None:
            return 0
        return book.price * self.limits.late_percent // 100

    def take_back(self, book, today):
        total = 0
@
        self.till.add(total)
        return total
"""

_LEDGER = """class Ledger:
    def __init__(self):
        self.days = {}

    def late_since(self, book):
        return self.days.get(book)

    def forget(self, book):
        self.days.pop(book, None)

    def remember(self, book, day):
        self.days[book] = day
"""

_FORGET, _CHARGE = "        self.ledger.forget(book)", "        total += self.surcharge(book, today)"
_OTHERS = (("catalogue", "shelf"), ("reader", "card"), ("room", "booking"), ("courier", "tour"))


def source(operator: str = "<=", *, forgets_first: bool = False) -> dict[str, str]:
    """Return the library's source: how a span compares, and whether the ledger forgets before the fee."""
    steps = [_FORGET, _CHARGE] if forgets_first else [_CHARGE, _FORGET]
    files = {
        "library/core/settings.py": _SETTINGS,
        "library/rules/span.py": _SPAN.replace("@", operator),
        "library/desk/renewal.py": _DESK,
        "library/desk/returns.py": _RETURNS.replace("@", "\n".join(steps)),
        "library/desk/ledger.py": _LEDGER,
        "etc/library.conf.dist": configuration(),
        "docs/house.md": "# House rules\n\n- A book may be out for a loan of up to 30 days.\n"
        "- Who is late pays 20 percent on top.\n",
    }
    for topic, word in _OTHERS:
        files[f"library/{topic}/{word}.py"] = (
            f"class {word.title()}:\n    def clip(self, value):\n        if value > self.base:\n"
            "            return self.base\n        return value\n"
        )
    return files


def configuration(days: int = 30, percent: int = 20) -> str:
    """Return a configuration file."""
    return f"# Longest loan\nLoan.MaxDays = {days}\n\n# Surcharge\nReturn.LatePercent = {percent}\n"


def log(line: str = "renewal of book 5127 refused to reader 881, reason 2") -> str:
    """Return the log of the desk with the affected attempt at its end."""
    lines = [
        f"2031-04-01 10:{n:02d}:00 renewal of book {6000 + n} granted to reader {200 + n}" for n in range(40)
    ]
    return "\n".join([*lines, f"2031-04-01 11:00:05 {line}"]) + "\n"
