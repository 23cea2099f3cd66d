from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from resources.llm.config import LLMConfig, ProviderSettings
from viano_assets.data_files import CONFIG
from viano_assets.errors import ConfigurationError

SECRET = "sk-canary-7f3a91d2c4"


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "llm.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refused(path: Path) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        LLMConfig.load(path)
    return caught.value


def test_a_missing_file_gives_the_offline_default(tmp_path: Path) -> None:
    config = LLMConfig.load(tmp_path / "absent.toml")
    assert config.chain() == ("offline",)
    assert LLMConfig.load(None) == config


def test_the_example_shows_every_setting_with_its_default(tmp_path: Path) -> None:
    text = (CONFIG / "llm.example.toml").read_text(encoding="utf-8")
    example = LLMConfig.load(CONFIG / "llm.example.toml")
    assert set(example.providers) == {"local", "openai", "openai-responses", "anthropic", "gemini"}
    assert example.rounds == LLMConfig().rounds
    assert example.egress == LLMConfig().egress
    named: list[Any] = [*LLMConfig.model_fields, *ProviderSettings.model_fields]
    named += [*type(example.rounds).model_fields, *type(example.egress).model_fields]
    assert [name for name in named if name not in text] == []
    local = example.providers["local"].model_dump()
    shown = {"model", "base_url", "api_key_env", "allow_loopback", "type"}
    defaults = ProviderSettings(type="openai_compatible", model="m").model_dump()
    assert {k: v for k, v in local.items() if k not in shown} == {
        k: v for k, v in defaults.items() if k not in shown
    }


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("colour = 1", "colour"),
        ("[rounds]\nmax_round = 3", "rounds.max_round"),
        ("[providers.x]\ntype = 'gemini'\nmodel = 'm'\nkey = 'v'", "providers.x.key"),
        ("[rounds]\nmax_rounds = 0", "rounds.max_rounds"),
        ("default_profile = 'x'", "default_profile"),
        ("[profiles.p]\nchain = ['nowhere']", "profiles.p"),
        ("[providers.x]\ntype = 'gemini'", "model is missing"),
        ("[providers.offline]\ntype = 'gemini'\nmodel = 'm'", "providers.offline"),
        ("[[egress.redact]]\npattern = '('", "egress.redact.0.pattern"),
    ],
)
def test_an_unusable_setting_is_named_with_its_file(tmp_path: Path, text: str, named: str) -> None:
    error = refused(write(tmp_path, text))
    assert error.code == "invalid_config"
    assert error.where.endswith("llm.toml")
    assert named in error.message


@pytest.mark.parametrize(
    "url",
    [
        f"https://api.example.com/v1?key={SECRET}",
        f"https://api.example.com/v1#{SECRET}",
        f"https://user:{SECRET}@api.example.com/v1",
        f"https://{SECRET}@api.example.com/v1",
        f"ftp://api.example.com/{SECRET}",
        f"https:///{SECRET}",
        f"http://api.example.com/{SECRET}",
        f"https://[fe80::1%25eth0]/{SECRET}",
        f"https://2130706433/{SECRET}",
        f"https://0x7f.0.0.1/{SECRET}",
    ],
)
def test_a_base_url_carries_no_secret_and_no_trick(tmp_path: Path, url: str) -> None:
    """B34: refused when the file is read, and the value appears in no text."""
    error = refused(write(tmp_path, f"[providers.x]\ntype='openai_compatible'\nmodel='m'\nbase_url='{url}'"))
    assert SECRET not in f"{error} {error.hint} {error.where} {error.__cause__} {error.__context__}"


def test_a_key_in_the_file_is_refused_without_repeating_it(tmp_path: Path) -> None:
    text = f"[providers.x]\ntype='gemini'\nmodel='m'\napi_key_env='{SECRET}'"
    error = refused(write(tmp_path, text))
    assert SECRET not in f"{error} {error.hint} {error.__cause__} {error.__context__}"


def test_a_key_variable_is_bound_to_one_origin(tmp_path: Path) -> None:
    text = "[providers.{}]\ntype='openai_compatible'\nmodel='m'\nbase_url='{}'\napi_key_env='KEY'\n"
    same = text.format("a", "https://one.example/v1") + text.format("b", "https://one.example/v2")
    assert LLMConfig.load(write(tmp_path, same)).provider_names() == ["a", "b", "offline"]
    other = text.format("a", "https://one.example/v1") + text.format("b", "https://two.example/v1")
    assert "another origin" in refused(write(tmp_path, other)).message


def test_the_fingerprint_changes_with_what_decides_an_answer_and_holds_no_key(tmp_path: Path) -> None:
    base = "[providers.x]\ntype='gemini'\nmodel='m'\n"
    plain = LLMConfig.load(write(tmp_path, base)).fingerprint("x")
    assert LLMConfig.load(write(tmp_path, base + "concurrency=7")).fingerprint("x") == plain
    assert LLMConfig.load(write(tmp_path, base + "temperature=0.5")).fingerprint("x") != plain
    rules = base + "[egress]\ndeny_files=['*.pem']"
    assert LLMConfig.load(write(tmp_path, rules)).fingerprint("x") != plain


def test_the_settings_folder_is_the_named_one_else_that_of_the_home(tmp_path: Path) -> None:
    named, home = tmp_path / "named", tmp_path / "home"
    assert LLMConfig.discover(home, {}).currency == "USD"
    for folder, currency in ((named, "EUR"), (home / "config", "CHF")):
        folder.mkdir(parents=True)
        (folder / "llm.local.toml").write_text(f"currency='{currency}'", encoding="utf-8")
    assert LLMConfig.discover(home, {"VIANO_CONFIG": str(named)}).currency == "EUR"
    assert LLMConfig.discover(home, {}).currency == "CHF"
