"""Decides which network addresses a provider may have, and resolves a host name exactly once.

Rules (docs/egress.md): public unicast addresses always; loopback and private ones only by the
provider's own flag; link-local, metadata, multicast, unspecified, reserved and every IPv6 form that wraps
an IPv4 address (mapped, compatible, 6to4, Teredo, NAT64) never. The connection goes to an address that was
checked here, so that a second look-up cannot lead elsewhere.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
from collections.abc import Callable

from resources.llm.providers.base import ErrorClass, ProviderFailure

Resolver = Callable[[str, int], list[str]]

_WRAPPERS = tuple(
    ipaddress.ip_network(text)
    for text in (
        "::/96",
        "::ffff:0:0/96",
        "::ffff:0:0:0/96",
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "2001::/32",
        "2002::/16",
    )
)
_METADATA = frozenset({"169.254.169.254", "169.254.170.2", "100.100.100.200", "fd00:ec2::254"})


def system_resolver(host: str, port: int) -> list[str]:
    """Return the addresses of `host` in the system's order."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def refusal(address: str, *, allow_loopback: bool, allow_private: bool) -> str | None:
    """Return why `address` may not be connected to, or None."""
    if "%" in address:
        return "an address with a zone id"
    ip = ipaddress.ip_address(address)
    wrapped = ip.version == 6 and not ip.is_loopback and any(ip in network for network in _WRAPPERS)
    rules = (
        (ip.is_loopback, None if allow_loopback else "a loopback address (set allow_loopback)"),
        (str(ip) in _METADATA or ip.is_link_local, "a link-local or metadata address"),
        (ip.is_multicast or ip.is_unspecified, "a multicast or unspecified address"),
        (wrapped, "an IPv6 form that wraps an IPv4 address"),
        (ip.is_reserved, "a reserved address"),
        (ip.is_private, None if allow_private else "a private address (set allow_private)"),
        (not ip.is_global, "an address that is not public"),
    )
    return next((why for applies, why in rules if applies), None)


async def resolve(host: str, port: int, resolver: Resolver) -> list[str]:
    """Resolve `host` in a thread that a hanging name server cannot keep the program waiting for.

    Raises:
        ProviderFailure: `name_resolution`.
    """
    try:
        return [str(ipaddress.ip_address(host))]
    except ValueError:
        pass
    loop = asyncio.get_running_loop()
    future: asyncio.Future[list[str]] = loop.create_future()

    def settle(found: list[str] | None) -> None:
        if future.done():
            return
        if found:
            future.set_result(found)
        else:
            future.set_exception(
                ProviderFailure(ErrorClass.TRANSPORT, "name_resolution", "the host name was not found")
            )

    def work() -> None:
        try:
            found: list[str] | None = resolver(host, port)
        except (OSError, UnicodeError):
            found = None
        try:
            loop.call_soon_threadsafe(settle, found)
        except RuntimeError:
            return

    threading.Thread(target=work, name="resolve", daemon=True).start()
    return await future


async def allowed_addresses(
    host: str, port: int, resolver: Resolver, *, allow_loopback: bool, allow_private: bool
) -> list[str]:
    """Resolve `host` and return its addresses when every one of them may be used.

    Raises:
        ProviderFailure: `name_resolution`, or `address_refused` when one address is out of bounds.
    """
    addresses = await resolve(host, port, resolver)
    for address in addresses:
        why = refusal(address, allow_loopback=allow_loopback, allow_private=allow_private)
        if why is not None:
            raise ProviderFailure(
                ErrorClass.CONFIGURATION,
                "address_refused",
                f"the provider's host resolves to {why}",
                provider_wide=True,
            )
    return addresses
