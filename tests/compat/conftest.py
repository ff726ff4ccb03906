"""Generated texts are tried as hard here as for the laws."""

from __future__ import annotations

import tests.laws.conftest  # noqa: F401  # for its effect: it loads the profile
