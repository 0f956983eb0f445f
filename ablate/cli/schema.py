"""``ablate schema``: what editors complete and check by."""

from __future__ import annotations

from pathlib import Path

from ablate.cli.output import print_json
from ablate.cli.plugins import registry_with
from ablate.experiment.json_schema import json_schema
from ablate.records.sealing import dumps, replacing


def write_schema(plugins: list[Path], out: Path | None) -> None:
    """Print the schema, or write it to a file."""
    schema = json_schema(registry_with(plugins))
    if out is None:
        print_json(schema)
        return
    with replacing(out) as temporary:
        temporary.write_text(dumps(schema), encoding="utf-8")
