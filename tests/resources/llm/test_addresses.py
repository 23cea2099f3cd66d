from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from resources.llm.providers.addresses import refusal
from resources.llm.providers.base import ErrorClass, ProviderFailure
from tests.support.gateway_case import config, gateway, provider, request
from tests.support.model_server import ModelServer, answers


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "169.254.1.1",
        "fe80::1",
        "100.100.100.200",
        "224.0.0.1",
        "ff02::1",
        "0.0.0.0",
        "::",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "::7f00:1",
        "2002:7f00:1::",
        "2001:0:7f00::1",
        "64:ff9b::7f00:1",
        "fe80::1%eth0",
        "240.0.0.1",
        "255.255.255.255",
        "fd00:ec2::254",
    ],
)
def test_an_address_that_no_flag_opens(address: str) -> None:
    assert refusal(address, allow_loopback=True, allow_private=True) is not None


@pytest.mark.parametrize(
    ("address", "loopback", "private"),
    [("127.0.0.1", True, False), ("::1", True, False), ("10.1.2.3", False, True), ("fd12::1", False, True)],
)
def test_a_local_address_needs_its_own_flag(address: str, loopback: bool, private: bool) -> None:
    assert refusal(address, allow_loopback=loopback, allow_private=private) is None
    assert refusal(address, allow_loopback=not loopback, allow_private=not private) is not None


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700:4700::1111"])
def test_a_public_address_is_open(address: str) -> None:
    assert refusal(address, allow_loopback=False, allow_private=False) is None


async def ask(resolver: Callable[[str, int], list[str]], **facts: Any) -> None:
    with ModelServer({"a": answers()}) as server:
        url = f"http://models.example:{server.port}/a"
        settings = config({"a": provider(server, base_url=url, **facts)})
        made = gateway(settings, resolver=resolver).links[0].provider
        await made.complete(request(), request_id="r-1")


async def test_a_name_is_resolved_once_and_the_connection_goes_to_what_was_checked() -> None:
    asked: list[str] = []

    def resolver(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["169.254.169.254"]

    await ask(resolver)
    assert asked == ["models.example"]


async def test_one_forbidden_address_among_others_refuses_the_name() -> None:
    with pytest.raises(ProviderFailure) as caught:
        await ask(lambda _host, _port: ["127.0.0.1", "169.254.169.254"])
    assert (caught.value.error_class, caught.value.code) == (ErrorClass.CONFIGURATION, "address_refused")


async def test_loopback_without_its_flag_is_refused() -> None:
    with pytest.raises(ProviderFailure, match="allow_loopback"):
        await ask(lambda _host, _port: ["127.0.0.1"], allow_loopback=False, allow_private=True)


async def test_a_name_server_that_hangs_costs_the_deadline_and_no_more() -> None:
    asked_enough = threading.Event()

    def resolver(host: str, port: int) -> list[str]:
        asked_enough.wait(60)
        return ["127.0.0.1"]

    start = time.monotonic()
    with pytest.raises(ProviderFailure) as caught:
        await ask(resolver, deadline_s=0.2)
    assert time.monotonic() - start < 30
    asked_enough.set()
    assert (caught.value.code, caught.value.unknown) == ("connect_timeout", False)
