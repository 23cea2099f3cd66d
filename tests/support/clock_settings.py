"""Twelve things a machine's clock does (R10), and every decision of the product that depends on time.

Each decision is played once with the clock turned in its middle. `play` returns what went wrong.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from resources.llm.clock import parse_iso
from resources.llm.records import PastRound, past_rounds
from resources.run_lock import GRACE_S, lock_folder, run_lock, worker_is_dead
from tests.support.cases import first_change, grown, next_change
from tests.support.gateway_case import config, gateway, new_case, operation, provider, request
from tests.support.model_server import ModelServer, answers, fails, in_turn
from viano_assets.errors import BusyError
from viano_assets.package.model import Head
from viano_assets.package.store import CheckpointStore
from viano_assets.phases.protocols import CallOutcome

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
TEN_YEARS = timedelta(days=3_653)
MAX_WAIT_S = 600.0
TOLERANCE_S = 1.0
DAY_S = 86_400.0
RUN = "0b9f8c1e-5d0a-4c53-9a55-3f2f7f3f9a01"


class Setting(NamedTuple):
    """What the clock shows before and after; `steps` are the seconds that pass between later questions."""

    name: str
    before: datetime
    after: datetime
    steps: tuple[float, ...] = (1.0, 30.0, 700.0)
    zone: str = "UTC"


def _from(start: datetime, seconds: float) -> tuple[datetime, datetime]:
    return start, start + timedelta(seconds=seconds)


SETTINGS = (
    Setting("an hour back", *_from(START, -3_600)),
    Setting("a day back", *_from(START, -DAY_S)),
    Setting("back to 1970", START, datetime(1970, 1, 1, tzinfo=UTC)),
    Setting("past 2038", START, datetime(2038, 1, 19, 3, 14, 8, tzinfo=UTC)),
    Setting("ten years on", START, START + TEN_YEARS),
    Setting("ten years back", START, START - TEN_YEARS),
    Setting("summer time begins", datetime(2026, 3, 29, 0, 59, 30, tzinfo=UTC),
            datetime(2026, 3, 29, 1, 0, 10, tzinfo=UTC), zone="Europe/Berlin"),
    Setting("summer time ends", datetime(2026, 10, 25, 0, 59, 30, tzinfo=UTC),
            datetime(2026, 10, 25, 1, 0, 10, tzinfo=UTC), zone="Europe/Berlin"),
    Setting("frozen", START, START, (0.0, 0.0, 0.0)),
    Setting("half a second back", *_from(START, -0.5)),
    Setting("over midnight", datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC),
            datetime(2027, 1, 1, 0, 0, 1, tzinfo=UTC)),
    Setting("to and fro", *_from(START, 7_200), steps=(-7_200.0, 7_200.0, -7_200.0, 700.0)),
)  # fmt: skip


class SetClock:
    """Wall time as set, monotonic time of the machine."""

    def __init__(self, moment: datetime) -> None:
        self.moment = moment

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


@contextmanager
def time_zone(name: str) -> Iterator[None]:
    """Let the process live in a time zone."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = name
    time.tzset()
    try:
        yield
    finally:
        if before is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = before
        time.tzset()


def _wait_faults(outcome: CallOutcome, now: datetime, limit: float) -> list[str]:
    if outcome.not_before is None:
        return []
    wait = (parse_iso(outcome.not_before) - now).total_seconds()
    fits = 0 <= wait <= limit + TOLERANCE_S
    return [] if fits else [f"{outcome.status} waits {wait:.3f} s"]


def _rounds(setting: Setting, scratch: Path, replies: Any) -> list[str]:
    """Ask again and again while the clock moves, at last for an answer; return what went wrong."""
    store, head = new_case(scratch / "home")
    clock = SetClock(setting.before)
    found: list[CallOutcome] = []
    faults: list[str] = []
    rounds = {"jitter": 0, "max_wait_s": MAX_WAIT_S}
    with ModelServer({"a": replies}) as server:
        made = gateway(config({"a": provider(server)}, rounds=rounds), scratch / "spend", clock)
        wanted = operation(head)

        def ask(times: int) -> None:
            for _ in range(times):
                outcome = asyncio.run(made.dispatch(store, wanted))
                faults.extend(_wait_faults(outcome, clock.now(), MAX_WAIT_S))
                last = found[-1] if found else None
                known = len(past_rounds(outcome.head, wanted))
                if last is not None and known == len(past_rounds(last.head, wanted)):
                    faults.extend(_moved(last, outcome))
                found.append(outcome)

        ask(2)
        clock.moment = setting.after
        ask(2)
        for step in setting.steps:
            clock.sleep(step)
            ask(2)
    head = store.latest(head.case_id, audit_history=True)
    faults += _order_faults(head, past_rounds(head, wanted))
    if made.spend(store, head).seconds < 0:
        faults.append("a duration is negative")
    if setting.name != "frozen" and found[-1].status != "answered":
        faults.append(f"in the end {found[-1].status}")
    return faults


def _order_faults(head: Head, past: Sequence[PastRound]) -> list[str]:
    faults = []
    if [round_.number for round_ in past] != list(range(1, len(past) + 1)):
        faults.append("the rounds are not numbered in their order")
    if [c.generation for c in head.checkpoints] != list(range(1, head.generation + 1)):
        faults.append("the generations are not in their order")
    for one, two in pairwise(past):
        if one.at <= two.at and one.not_before and two.not_before and two.not_before < one.not_before:
            faults.append("a later round is due earlier")
    return faults


def _moved(last: CallOutcome, outcome: CallOutcome) -> list[str]:
    """A wait that was told stays the same or ends; it is never put off without a new round."""
    if outcome.not_before is None or last.not_before is None or outcome.not_before == last.not_before:
        return []
    return [f"the due time moved from {last.not_before} to {outcome.not_before} without a round"]


def retry_due(setting: Setting, scratch: Path) -> list[str]:
    """A failed round is put off, and comes to its answer at the latest after the policy's maximum."""
    return _rounds(setting, scratch, in_turn(fails(503), fails(503), answers()))


def retry_after_seconds(setting: Setting, scratch: Path) -> list[str]:
    """A day asked for in seconds is cut to the policy's maximum."""
    return _rounds(setting, scratch, in_turn(fails(429, headers={"retry-after": "86400"}), answers()))


def retry_after_date(setting: Setting, scratch: Path) -> list[str]:
    """A provider whose clock is right names a date; ours may be anywhere."""
    header = {"retry-after": format_datetime(START + timedelta(seconds=60), usegmt=True)}
    turned = setting._replace(before=setting.after, after=setting.before)
    faults = []
    for number, way in enumerate((setting, turned)):
        faults += _rounds(way, scratch / str(number), in_turn(fails(429, headers=header), answers()))
    return faults


def daily_ceiling(setting: Setting, scratch: Path) -> list[str]:
    """A day's ceiling defers to midnight at most, and what a day has booked stays booked."""
    store, head = new_case(scratch / "home")
    clock = SetClock(setting.before)
    faults: list[str] = []
    with ModelServer({"a": answers()}) as server:
        settings = config({"a": provider(server)}, max_tokens_per_day=1_500)
        made = gateway(settings, scratch / "spend", clock)
        spent: dict[str, int] = {}
        asked = 0
        for step in (None, None, "turn", 0.0, *setting.steps, DAY_S):
            if step == "turn":
                clock.moment = setting.after
            elif step is not None:
                clock.sleep(float(step))
            for _ in range(6):
                asked += 1
                wanted = operation(store.latest(head.case_id), request(f"question {asked}"))
                outcome = asyncio.run(made.dispatch(store, wanted))
                faults += _wait_faults(outcome, clock.now(), DAY_S)
                day = made.ledger.day()
                total = made.ledger.day_total(day).tokens
                if total < spent.get(day, 0):
                    faults.append(f"{day} lost what it had booked")
                if total > 1_500:
                    faults.append(f"{day} passed its ceiling")
                spent[day] = total
        refused = asked - server.count()
    if refused == 0 or server.count() == 0:
        faults.append("the ceiling was never met, so nothing was shown")
    if sum(spent.values()) != 120 * server.count():
        faults.append("the days do not add up to the calls")
    return faults


def case_lock(setting: Setting, scratch: Path) -> list[str]:
    """Who holds a case holds it at any hour, and a lock that was let go is free at any hour."""
    clock = SetClock(setting.before)
    home = scratch / "home"
    store, other = CheckpointStore(home, clock=clock), CheckpointStore(home, clock=clock)
    grown(store, "c", 2)
    faults = []
    with store.lock("c"):
        clock.moment = setting.after
        for step in (0.0, *setting.steps):
            clock.sleep(step)
            try:
                with other.lock("c"):
                    faults.append("two owners")
            except BusyError:
                continue
    with other.lock("c"):
        other.commit(other.latest("c"), next_change(3))
    return faults


def checkpoints(setting: Setting, scratch: Path) -> list[str]:
    """Generation numbers order the history; times are told as the clock told them."""
    clock = SetClock(setting.before)
    home = scratch / "home"
    store = CheckpointStore(home, clock=clock)
    head = store.create("c", first_change(b"small"))
    told = [clock.now()]
    clock.moment = setting.after
    for number, step in enumerate((0.0, *setting.steps), start=2):
        clock.sleep(step)
        head = store.commit(head, next_change(number))
        told.append(clock.now())
    faults = []
    fresh = CheckpointStore(home, clock=SetClock(setting.before)).latest("c", audit_history=True)
    if fresh != head or [c.generation for c in fresh.checkpoints] != list(range(1, len(told) + 1)):
        faults.append("the history is not in its order")
    if [datetime.fromisoformat(c.at) for c in fresh.checkpoints] != told:
        faults.append("a time is not the one of the clock")
    store.export("c", scratch / "c.zip")
    if CheckpointStore(scratch / "other", clock=clock).import_package(scratch / "c.zip") != head:
        faults.append("the imported head is another one")
    if any(t.seconds < 0 for t in store.telemetry.operations().values()):
        faults.append("a duration is negative")
    return faults


def dead_runs(setting: Setting, scratch: Path) -> list[str]:
    """A run whose lock is held lives at any hour; one whose lock fell is dead at any hour."""
    faults = []
    before, after = setting.before.timestamp(), setting.after.timestamp()
    with run_lock(scratch, RUN):
        if any(worker_is_dead(scratch, RUN, before, now) for now in (before, after, after + GRACE_S * 2)):
            faults.append("a living worker is taken for dead")
    path = lock_folder(scratch) / RUN
    path.write_bytes(b"")
    if not all(worker_is_dead(scratch, RUN, before, now) for now in (before, after, after - GRACE_S)):
        faults.append("a dead worker is taken for living")
    path.write_bytes(b"ended")
    os.utime(path, (before, before))
    if worker_is_dead(scratch, RUN, before, before + GRACE_S / 2):
        faults.append("a run that just ended its work is taken for dead")
    return faults


Decision = Callable[[Setting, Path], list[str]]
DECISIONS: dict[str, Decision] = {
    "retry due": retry_due,
    "Retry-After in seconds": retry_after_seconds,
    "Retry-After as a date": retry_after_date,
    "daily ceiling": daily_ceiling,
    "case lock": case_lock,
    "checkpoints": checkpoints,
    "dead runs": dead_runs,
}


def play(decision: str, setting: Setting, scratch: Path) -> list[str]:
    """Play one decision with one clock and return what went wrong."""
    scratch.mkdir(parents=True, exist_ok=True)
    with time_zone(setting.zone):
        return DECISIONS[decision](setting, scratch)
