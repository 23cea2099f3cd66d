"""The connection goes to a checked address, yet the certificate must be that of the configured name."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from resources.llm.clock import SystemClock
from resources.llm.config import ProviderSettings
from resources.llm.providers.base import ProviderFailure
from resources.llm.providers.http_provider import Surroundings
from resources.llm.providers.openai_compatible import OpenAICompatibleProvider
from tests.support.gateway_case import ENVIRON, request
from tests.support.model_server import completion

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="makes its certificate with openssl")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    key, cert = folder / "key.pem", folder / "cert.pem"
    names = "subjectAltName=DNS:models.example"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]
    command += ["-keyout", str(key), "-out", str(cert), "-subj", "/CN=models.example", "-addext", names]
    subprocess.run(command, check=True, capture_output=True)
    return key, cert


@contextmanager
def tls_server(certificate: tuple[Path, Path]) -> Iterator[tuple[int, list[str]]]:
    """Serve one kind of answer over TLS; yields the port and the Host headers seen."""
    import json

    hosts: list[str] = []
    loop = asyncio.new_event_loop()
    ready = threading.Event()
    ports: list[int] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate[1], certificate[0])

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        hosts.extend(line[6:] for line in head.split("\r\n") if line.startswith("host: "))
        body = json.dumps(completion('{"ok":true}')).encode()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()

    def run() -> None:
        asyncio.set_event_loop(loop)
        server = loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", 0, ssl=context))
        ports.append(server.sockets[0].getsockname()[1])
        ready.set()
        loop.run_forever()
        server.close()
        loop.run_until_complete(asyncio.sleep(0.05))
        loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield ports[0], hosts
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


def asked(port: int, host: str, trusted: Path | None) -> OpenAICompatibleProvider:
    settings = ProviderSettings(
        type="openai_compatible",
        model="m",
        base_url=f"https://{host}:{port}/v1",
        api_key_env="CANARY_KEY",
        allow_loopback=True,
    )
    tls = None if trusted is None else ssl.create_default_context(cafile=str(trusted))
    around = Surroundings(SystemClock(), ENVIRON, resolver=lambda _host, _port: ["127.0.0.1"], tls=tls)
    return OpenAICompatibleProvider("a", settings, around)


async def test_the_name_is_checked_though_the_address_was_pinned(certificate: tuple[Path, Path]) -> None:
    with tls_server(certificate) as (port, hosts):
        reply = await asked(port, "models.example", certificate[1]).complete(request(), request_id="r")
        assert reply.text == b'{"ok":true}'
        assert hosts == [f"models.example:{port}"]


@pytest.mark.parametrize(("host", "trust"), [("other.example", True), ("models.example", False)])
async def test_another_name_or_an_unknown_authority_gets_no_request(
    certificate: tuple[Path, Path], host: str, trust: bool
) -> None:
    with tls_server(certificate) as (port, hosts):
        with pytest.raises(ProviderFailure) as caught:
            await asked(port, host, certificate[1] if trust else None).complete(request(), request_id="r")
        assert hosts == []
    assert (caught.value.code, caught.value.unknown) == ("connection_failed", False)
