"""How hard generated tests are tried: enough in `make test`, long with ASIDES_LAWS=long (`make laws`). No deadlines."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.laws.effort import LONG

_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)

# The same examples every time, so that a change that breaks nothing never fails by bad luck.
settings.register_profile("test", derandomize=True, database=None, deadline=None, suppress_health_check=_SLOW)
settings.register_profile("long", deadline=None, suppress_health_check=_SLOW, print_blob=True)
settings.load_profile("long" if LONG else "test")
