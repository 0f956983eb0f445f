"""How every test runs."""

from __future__ import annotations

import gc


def pytest_collection_finish() -> None:
    """Look for garbage seldom, and never in what the tests have imported: that took a tenth of their time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 10, 20)
