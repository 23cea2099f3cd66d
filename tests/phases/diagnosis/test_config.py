from __future__ import annotations

from pathlib import Path

import pytest

from viano_assets.data_files import CONFIG, prompt
from viano_assets.errors import ConfigurationError
from viano_assets.phases.diagnosis.config import DiagnosisConfig, DiagnosisLimits


def test_defaults_and_missing_file(tmp_path: Path) -> None:
    config = DiagnosisConfig.load(tmp_path / "none.toml")
    assert config.policy() == {"max_invalid_responses": 3, "max_output_tokens": 8192, "deadline_s": 180}
    assert config.limits == DiagnosisLimits(context_bytes=2 * 2**20, artifact_bytes=4 * 2**20)


def test_the_example_shows_every_default() -> None:
    example = CONFIG / "diagnosis.example.toml"
    assert DiagnosisConfig.load(example) == DiagnosisConfig()
    text = example.read_text()
    for name, value in {**DiagnosisConfig().policy(), **DiagnosisLimits().model_dump()}.items():
        assert f"{name} = {value}" in text


@pytest.mark.parametrize(
    ("text", "code", "key"),
    [
        ("[diagnosis]\nmax_invalid = 3\n", "config_unknown_key", "diagnosis.max_invalid"),
        ("[limits]\ncontext = 3\n", "config_unknown_key", "limits.context"),
        ("[other]\nx = 1\n", "config_unknown_key", "other"),
        ("[diagnosis]\nmax_invalid_responses = 0\n", "config_invalid_value", "max_invalid_responses"),
        ("[diagnosis]\nmax_invalid_responses = '3'\n", "config_invalid_value", "max_invalid_responses"),
        ("[diagnosis\n", "config_unreadable", ""),
    ],
)
def test_mistakes_name_file_and_key(tmp_path: Path, text: str, code: str, key: str) -> None:
    path = tmp_path / "diagnosis.local.toml"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        DiagnosisConfig.load(path)
    assert caught.value.code == code
    assert str(path) in caught.value.where
    assert key in str(caught.value)


def test_the_prompt_speaks_of_every_rule_a_model_can_break() -> None:
    text = prompt("diagnosis_v1")
    for word in (
        "inconclusive_kind",
        "contradictions",
        "countercheck",
        "scope_limits",
        "backticks",
        "60 lines",
        "validation_issues",
        "intended_behaviour",
        "premise_contradicted",
    ):
        assert word in text
