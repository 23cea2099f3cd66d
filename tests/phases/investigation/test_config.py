"""Settings: the example shows every default, mistakes name file and key."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from viano_assets.budget.policy import BudgetPolicy
from viano_assets.data_files import CONFIG
from viano_assets.errors import ConfigurationError
from viano_assets.phases.investigation.config import InvestigationConfig, InvestigationLimits

EXAMPLE = CONFIG / "investigation.example.toml"


def test_the_example_is_the_defaults() -> None:
    assert InvestigationConfig.load(EXAMPLE) == InvestigationConfig()
    assert InvestigationConfig.load(EXAMPLE.with_name("missing.toml")) == InvestigationConfig()


def test_the_example_names_every_setting() -> None:
    tables = tomllib.loads(EXAMPLE.read_text(encoding="utf-8"))
    nested = {"tool_costs", "budget", "limits"}
    assert set(tables["investigation"]) == set(InvestigationConfig.model_fields) - nested
    assert set(tables["budget"]) == set(BudgetPolicy.model_fields)
    assert set(tables["limits"]) == set(InvestigationLimits.model_fields)


@pytest.mark.parametrize(
    ("text", "code", "key"),
    [
        ("[investigation]\nspeed = 1\n", "config_unknown_key", "investigation.speed"),
        ("[investigation]\ndispatch_limit = 0\n", "config_invalid_value", "investigation.dispatch_limit"),
        ("[investigation]\nmax_actions = 5\n", "config_invalid_value", "investigation.max_actions"),
        ('[investigation]\nmax_actions = "4"\n', "config_invalid_value", "investigation.max_actions"),
        ("[costs]\n'source.read' = 0\n", "config_invalid_value", "source.read"),
        ("[budget]\nreward_curve = [[0, 0], [100, 120]]\n", "config_invalid_value", "budget.reward_curve"),
        ("[budget]\nbonus = 1\n", "config_unknown_key", "budget.bonus"),
        ("[limits]\ncontext_bytes = -1\n", "config_invalid_value", "limits.context_bytes"),
        ("[rewards]\n", "config_unknown_key", "rewards"),
        ("[investigation\n", "config_unreadable", ""),
    ],
)
def test_a_mistake_is_named_by_file_and_key(tmp_path: Path, text: str, code: str, key: str) -> None:
    path = tmp_path / "investigation.local.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        InvestigationConfig.load(path)
    assert caught.value.code == code
    assert key in caught.value.message
    assert str(path) in caught.value.where


def test_costs_and_curve_are_read(tmp_path: Path) -> None:
    path = tmp_path / "investigation.local.toml"
    path.write_text(
        "[costs]\n'db.query' = 9\n[budget]\nreward_curve = [[0, 0], [100, 50]]\n", encoding="utf-8"
    )
    config = InvestigationConfig.load(path)
    assert config.tool_costs == {"db.query": 9}
    assert config.budget.reward(10, 100) == 5
