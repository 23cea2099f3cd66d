from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from resources.llm.accounting import Ledger, PriceTable
from resources.llm.config import LLMConfig
from resources.llm.providers.base import Tokens
from resources.llm.records import spend_report
from tests.support.gateway_case import TurnedClock, config, gateway, new_case, operation, provider, request
from tests.support.model_server import Exchange, ModelServer, answers
from viano_assets.canonical import strict_loads
from viano_assets.errors import BusyError, ContractError
from viano_assets.package.store import CheckpointStore

PRICE = {"provider": "a", "model": "model-a", "input": 2, "cached": 1, "output": 10}
PRICES = [{**PRICE, "date": "2026-01-01", "source": "test"}]
TODAY = "2026-03-01"


async def test_money_is_reserved_at_its_worst_case_and_settled_at_what_was_counted(tmp_path: Path) -> None:
    store, head = new_case(tmp_path)
    with ModelServer({"a": answers()}) as server:
        made = gateway(config({"a": provider(server)}, prices=PRICES), tmp_path / "s")
        outcome = await made.dispatch(store, operation(head))
    reserve, settle = made.ledger.entries(TODAY)
    assert Decimal(reserve["cost"]) > Decimal(settle["cost"]) == Decimal("0.00036")
    assert reserve["tokens"] > settle["tokens"] == 120
    assert reserve["entry"] == settle["entry"]
    assert outcome.usage.cost == pytest.approx(0.00036)


async def test_a_call_that_could_pass_the_ceiling_is_not_made_and_a_raised_one_goes_on(
    tmp_path: Path,
) -> None:
    """B28: hitting the limit resets nothing: the spent total continues under the new limit."""
    store, head = new_case(tmp_path)
    with ModelServer({"a": answers()}) as server:
        providers = {"a": provider(server)}
        first = gateway(config(providers, max_tokens=900), tmp_path / "s")
        assert (await first.dispatch(store, operation(head))).status == "answered"
        low = gateway(config(providers, max_tokens=600), tmp_path / "s")
        stopped = await low.dispatch(store, operation(head, attempt_id="attempt-2"))
        assert (stopped.status, stopped.code) == ("blocked", "case_token_ceiling")
        assert "600 tokens" in stopped.message
        assert "120" in stopped.message
        assert server.count() == 1
        raised = gateway(config(providers, max_tokens=1_500), tmp_path / "s")
        assert (await raised.dispatch(store, operation(head, attempt_id="attempt-2"))).status == "answered"
    assert spend_report(store.latest("BUG-1")).amount().tokens == 240


async def test_a_day_ceiling_defers_to_the_next_day_across_cases(tmp_path: Path) -> None:
    store, one = new_case(tmp_path)
    _, two = new_case(tmp_path, "BUG-2")
    clock = TurnedClock()
    with ModelServer({"a": answers()}) as server:
        settings = config({"a": provider(server)}, prices=PRICES, max_cost_per_day="0.003")
        made = gateway(settings, tmp_path / "s", clock)
        assert (await made.dispatch(store, operation(one))).status == "answered"
        outcome = await made.dispatch(store, operation(two))
        while outcome.status == "answered":
            outcome = await made.dispatch(store, operation(two, attempt_id=f"attempt-{server.count() + 1}"))
        assert (outcome.status, outcome.code) == ("deferred", "day_cost_ceiling")
        assert outcome.not_before == "2026-03-02T00:00:00.000Z"
        spent = server.count()
        clock.turn(86_400)
        assert (await made.dispatch(store, operation(two, attempt_id="attempt-9"))).status == "answered"
        assert server.count() == spent + 1


async def test_a_provider_over_the_ceiling_is_passed_over_for_a_cheaper_one(tmp_path: Path) -> None:
    store, head = new_case(tmp_path)
    cheap = {**PRICES[0], "provider": "b", "model": "model-b", "input": 0, "cached": 0, "output": 0}
    with ModelServer({"a": answers(), "b": answers()}) as server:
        settings = config(
            {"a": provider(server), "b": provider(server, "b")}, prices=[*PRICES, cheap], max_cost="0.001"
        )
        outcome = await gateway(settings).dispatch(store, operation(head))
        assert (server.count("a"), server.count("b")) == (0, 1)
    assert outcome.usage.cost == 0


async def test_an_unknown_price_is_said_and_refused_only_under_a_money_ceiling(tmp_path: Path) -> None:
    store, head = new_case(tmp_path)
    with ModelServer({"a": answers()}) as server:
        providers = {"a": provider(server)}
        refused = await gateway(config(providers, max_cost=1)).dispatch(store, operation(head))
        assert (refused.status, refused.code) == ("blocked", "price_unknown")
        assert server.count() == 0
        allowed = gateway(config(providers, max_cost=1, unknown_price="allow"))
        assert (await allowed.dispatch(store, operation(head))).usage.cost is None
    report = spend_report(store.latest("BUG-1"))
    assert (report.unpriced, report.known_cost) == (1, Decimal(0))
    assert report.cached_share == 0.4


async def test_an_answer_without_usage_is_booked_at_its_worst_case(tmp_path: Path) -> None:
    store, head = new_case(tmp_path)
    with ModelServer({"a": answers(usage={"prompt_tokens": True, "completion_tokens": -1})}) as server:
        outcome = await gateway(config({"a": provider(server)})).dispatch(store, operation(head))
    assert outcome.usage.tokens_out == 100
    assert outcome.usage.tokens_in > 300


def test_cached_tokens_have_their_own_price() -> None:
    table = PriceTable(config({"a": _plain()}, prices=PRICES))
    price = table.price("a", "unheard", "model-a")
    assert PriceTable.cost(price, Tokens(1_000_000, 400_000, 100_000)) == Decimal("2.6")
    assert PriceTable.cost(None, Tokens(1, 0, 1)) is None


def _plain() -> dict[str, Any]:
    return {"type": "openai_compatible", "model": "model-a"}


def test_a_torn_last_line_never_was_acknowledged_and_a_damaged_one_is_an_error(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, TurnedClock())
    from resources.llm.accounting import Amount

    for number in range(3):
        entry = {"entry": f"e{number}", "tokens": 10, "cost": "1"}
        assert ledger.reserve(entry, Amount(10, Decimal(1)), LLMConfig()) is None
    path = tmp_path / f"{TODAY}.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"kind":"res')
    assert ledger.day_total(TODAY) == (30, Decimal(3))
    ledger.settle({"entry": "e0", "tokens": 1, "cost": "0.5"})
    assert ledger.day_total(TODAY) == (21, Decimal("2.5"))
    path.write_bytes(b"{broken\n" + whole)
    with pytest.raises(ContractError, match="ledger_damaged"):
        ledger.entries(TODAY)


def test_two_dispatches_never_call_for_one_case_at_once(tmp_path: Path) -> None:
    """The loser is told at once with a stable code, and one request is made."""
    store, head = new_case(tmp_path)
    entered, leave = threading.Event(), threading.Event()

    async def slow(exchange: Exchange) -> None:
        entered.set()
        await asyncio.to_thread(leave.wait, 10)
        await answers()(exchange)

    with ModelServer({"a": slow}) as server:
        settings = config({"a": provider(server)})
        results: list[str] = []

        def run() -> None:
            made = gateway(settings, tmp_path / "s")
            results.append(asyncio.run(made.dispatch(store, operation(head))).status)

        worker = threading.Thread(target=run)
        worker.start()
        assert entered.wait(10)
        with pytest.raises(BusyError, match="call_in_flight"):
            asyncio.run(
                gateway(settings, tmp_path / "s").dispatch(CheckpointStore(tmp_path), operation(head))
            )
        leave.set()
        worker.join(10)
        assert server.count() == 1
    assert results == ["answered"]


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from tests.support.gateway_case import config, gateway, operation
from viano_assets.package.store import CheckpointStore
home, url, point = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
store = CheckpointStore(home)
provider = {"type": "openai_compatible", "model": "model-a", "base_url": url, "allow_loopback": True}
def fault(name):
    if name == point:
        os.kill(os.getpid(), signal.SIGKILL)
made = gateway(config({"a": provider}), home / "s", fault=fault)
asyncio.run(made.dispatch(store, operation(store.latest("BUG-1"))))
"""


def killed_at(home: Path, url: str, point: str) -> int:
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(home), url, point], cwd=root, capture_output=True, check=False
    )
    return done.returncode


@pytest.mark.parametrize("point", ["attempt_settled", "round_recorded"])
def test_what_was_paid_for_survives_a_kill_and_is_not_paid_again(tmp_path: Path, point: str) -> None:
    store, head = new_case(tmp_path)
    with ModelServer({"a": answers()}) as server:
        assert killed_at(tmp_path, server.url(), point) == -signal.SIGKILL
        plain = {"a": {**_plain(), "base_url": server.url(), "allow_loopback": True}}
        made = gateway(config(plain), tmp_path / "s")
        outcome = asyncio.run(made.dispatch(store, operation(head)))
        assert server.count() == 1
    assert outcome.answer == {"ok": True}
    assert spend_report(outcome.head).calls == 1


def test_a_kill_during_the_call_is_booked_as_unknown_and_repeated_as_a_new_attempt(tmp_path: Path) -> None:
    store, head = new_case(tmp_path)
    killed: list[int] = []

    async def first(exchange: Exchange) -> None:
        if exchange.number == 1:
            killed.append(exchange.number)
            os.kill(child.pid, signal.SIGKILL)
        else:
            await answers()(exchange)

    root = Path(__file__).parents[3]
    with ModelServer({"a": first}) as server:
        child = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(tmp_path), server.url(), "never"], cwd=root, stderr=-3
        )
        assert child.wait(30) == -signal.SIGKILL
        plain = {"a": {**_plain(), "base_url": server.url(), "allow_loopback": True}}
        made = gateway(config(plain), tmp_path / "s")
        outcome = asyncio.run(made.dispatch(store, operation(head)))
        assert server.count() == 2
    assert outcome.answer == {"ok": True}
    report = spend_report(outcome.head)
    assert (report.calls, report.unknown) == (2, 1)
    rounds = [c.detail["outcome"] for c in outcome.head.checkpoints if c.event == "model_round_recorded"]
    assert rounds == ["unknown", "answered"]
    kept: Any = strict_loads(store.read(outcome.head, (outcome.call_path or "").replace("0002", "0001")))
    assert kept["attempts"][0]["code"] == "interrupted"


async def test_a_busy_case_keeps_a_paid_answer_for_the_next_dispatch(tmp_path: Path) -> None:
    """The answer waits in the journal when the case cannot be written; it is not asked for again."""
    store, head = new_case(tmp_path)
    release, held = threading.Event(), threading.Event()

    def hold() -> None:
        with CheckpointStore(tmp_path).lock("BUG-1"):
            held.set()
            release.wait(30)

    with ModelServer({"a": answers()}) as server:
        made = gateway(config({"a": provider(server)}), tmp_path / "s", _Fast())
        worker = threading.Thread(target=hold)
        worker.start()
        assert held.wait(10)
        with pytest.raises(BusyError):
            await made.dispatch(store, operation(head))
        release.set()
        worker.join(10)
        outcome = await made.dispatch(store, operation(head, request("hello")))
        assert server.count() == 1
    assert outcome.answer == {"ok": True}


class _Fast(TurnedClock):
    """Every look at the clock takes a second, so that a bounded wait ends soon."""

    def monotonic(self) -> float:
        self.ticks += 1
        return self.ticks
