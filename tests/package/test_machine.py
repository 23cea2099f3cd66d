"""A short run of the state machine; `make test-deep NAME=faults` runs it for long."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.support.package_machine import PackageMachine


def test_any_use_keeps_the_package_equal_to_its_model() -> None:
    run_state_machine_as_test(
        PackageMachine,
        settings=settings(
            max_examples=8,
            stateful_step_count=10,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
