from __future__ import annotations

import pytest

from viano_assets.canonical import canonical_json, strict_loads
from viano_assets.errors import ContractError


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        pytest.param(b'{"a":1,"a":2}', "duplicate_key", id="last would win silently"),
        pytest.param(b'{"a":1,"\\u0061":2}', "duplicate_key", id="escaped duplicate"),
        pytest.param(b"NaN", "not_a_number", id="NaN"),
        pytest.param(b"[1e999]", "number_range", id="overflow"),
        pytest.param(b"[" + b"9" * 5000 + b"]", "integer_range", id="5000 digits"),
        pytest.param(b"[" * 100_000, "nesting_depth", id="deep"),
        pytest.param(b"\xef\xbb\xbf{}", "byte_order_mark", id="BOM"),
        pytest.param(b"\xff\xfe{}", "invalid_utf8", id="UTF-16"),
        pytest.param(b'"\\ud83d"', "invalid_text", id="lone surrogate"),
        pytest.param(b'"a\\u0000b"', "invalid_text", id="NUL"),
        pytest.param(b"{} {}", "invalid_json", id="two values"),
        pytest.param(b'{"a":1,}', "invalid_json", id="trailing comma"),
        pytest.param(b"", "invalid_json", id="empty"),
    ],
)
def test_strict_decoder_refuses(raw: bytes, code: str) -> None:
    with pytest.raises(ContractError) as caught:
        strict_loads(raw)
    assert caught.value.code == code


def test_canonical_form_is_stable() -> None:
    assert canonical_json({"b": [1, True, None], "a": "ü"}) == '{"a":"ü","b":[1,true,null]}'.encode()


def test_canonical_form_refuses_nan() -> None:
    with pytest.raises(ContractError):
        canonical_json({"a": float("nan")})
