from __future__ import annotations

import json
from pathlib import Path

from resources.llm.doctor import probe_profiles
from tests.support.gateway_case import CANARY, ENVIRON, config, provider
from tests.support.model_server import Exchange, ModelServer, answers, completion, fails


async def test_without_a_profile_nothing_is_sent_and_a_missing_key_is_named(tmp_path: Path) -> None:
    with ModelServer({"a": answers()}) as server:
        settings = config({"a": provider(server), "b": provider(server, "b", api_key_env="ABSENT")})
        found = {p.profile: p for p in await probe_profiles(tmp_path, None, config=settings, environ=ENVIRON)}
        assert server.count() == 0
    assert found["offline"].state == "ok"
    assert found["a"].state == "ok"
    assert found["b"].state == "missing"
    assert "ABSENT" in found["b"].remedy


async def test_one_tiny_call_tells_mode_latency_tokens_and_price(tmp_path: Path) -> None:
    price = {
        "provider": "a",
        "model": "model-a",
        "input": 1,
        "output": 4,
        "date": "2026-01-31",
        "source": "test",
    }
    with ModelServer({"a": answers('{"count":4}')}) as server:
        settings = config({"a": provider(server)}, prices=[price])
        (found,) = await probe_profiles(tmp_path, "a", config=settings, environ=ENVIRON)
        assert server.count() == 1
        assert len(server.requests[0].body) < 2_000
    assert (found.state, found.mode, found.conforms) == ("ok", "json_schema", True)
    assert found.latency_ms is not None
    assert (found.tokens_in, found.tokens_out) == (100, 20)
    assert "2026-01-31" in found.price
    entries = [
        json.loads(line) for line in next((tmp_path / "spend").glob("*.jsonl")).read_text().splitlines()
    ]
    assert [entry["kind"] for entry in entries] == ["reserve", "settle"]


async def test_a_server_that_ignores_the_schema_is_told_apart_from_one_that_follows_it(
    tmp_path: Path,
) -> None:
    with ModelServer({"a": answers('{"letters":"four"}')}) as server:
        (found,) = await probe_profiles(
            tmp_path, "a", config=config({"a": provider(server)}), environ=ENVIRON
        )
    assert (found.state, found.reachable, found.conforms) == ("failed", True, False)
    assert "prompted" in found.remedy


async def test_the_weaker_mode_a_server_accepts_is_reported(tmp_path: Path) -> None:
    async def picky(exchange: Exchange) -> None:
        if "response_format" in exchange.json:
            await exchange.reply(400, {"error": {"message": "response_format is not supported"}})
        else:
            await exchange.reply(200, completion('{"count":4}'))

    with ModelServer({"a": picky}) as server:
        (found,) = await probe_profiles(
            tmp_path, "a", config=config({"a": provider(server)}), environ=ENVIRON
        )
        assert server.count() == 3
    assert (found.state, found.mode) == ("ok", "prompted")


async def test_a_wrong_key_is_told_without_the_key(tmp_path: Path) -> None:
    with ModelServer({"a": fails(401, {"error": {"message": f"bad {CANARY}"}})}) as server:
        (found,) = await probe_profiles(
            tmp_path, "a", config=config({"a": provider(server)}), environ=ENVIRON
        )
    assert (found.state, found.reachable) == ("failed", False)
    assert "CANARY_KEY" in found.detail
    assert CANARY not in repr(found)
