"""How texts are generated for the tests of history. Apart from the samples, which processes need that start often."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

STEADY = settings(
    derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
"""The same in every run, and slow disks are no failure."""
