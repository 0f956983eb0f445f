"""``ablate init``: a first experiment, a plugin and the editor's schema."""

from __future__ import annotations

import shlex
from importlib.resources import files
from pathlib import Path

from ablate.cli.output import console, print_json
from ablate.cli.schema import write_schema
from ablate.errors import InputError

STARTER = ("experiment.yaml", "my_norm.py")
SCHEMA = "schema.json"


def start(folder: Path, *, as_json: bool) -> None:
    """Write the files; nothing that is there is overwritten."""
    there = [name for name in (*STARTER, SCHEMA) if (folder / name).exists()]
    if there:
        words = f"`{folder / there[0]}` is there already, and nothing is overwritten"
        raise InputError.one("S113", words, help="give another folder: `ablate init DIR`")
    folder.mkdir(parents=True, exist_ok=True)
    for name in STARTER:
        (folder / name).write_bytes((files("ablate") / "starter" / name).read_bytes())
    write_schema([folder / "my_norm.py"], folder / SCHEMA)
    if as_json:
        print_json({"files": [str(folder / name) for name in (*STARTER, SCHEMA)]})
        return
    out = console()
    experiment = folder / STARTER[0]
    out.print(f"{experiment}: the experiment, to be changed as you like")
    out.print(f"{folder / STARTER[1]}: a component of your own, which it compares")
    out.print(f"{folder / SCHEMA}: what editors complete and check by; `ablate schema` writes it anew")
    out.print(f"next: {shlex.join(['ablate', 'plan', str(experiment)])}")
