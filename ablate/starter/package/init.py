"""Components for Ablate, which finds them by the entry points in `pyproject.toml`."""
