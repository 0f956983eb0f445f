"""The page of the catalogue is made from the registry: ``python -m tests.test_catalogue`` writes it anew."""

from __future__ import annotations

from pathlib import Path

from ablate.cli.plugins.showing import describe
from ablate.registry import Registry
from ablate.slots import SLOTS

PAGE = Path(__file__).parents[1] / "plugins" / "README.md"
HEAD = """# The catalogue

Every component that ships, by slot. `ablate plugins show SLOT.KIND` prints the options of one, with their bounds and
defaults, what it declares of itself, and a line of YAML to paste. What stands in **bold** is there where an experiment
names none; what stands in *italics* is what a switch's `off` puts in. The tests hold this page to the code.
"""


def page() -> str:
    registry = Registry.installed()
    parts = [HEAD]
    for slot, contract in SLOTS.items():
        rows = []
        for kind in registry.kinds(slot):
            told = describe(registry.entry(slot, kind), registry)
            mark = {"default": "**", "neutral": "*"}.get(told["status"], "")
            rows.append(f"| {mark}`{kind}`{mark} | {told['description']} | {told['paper']} |")
        doing = contract.describe()
        parts.append(
            "\n".join([f"## {slot}\n", f"{doing}\n", "| kind | what it is | source |", "|---|---|---|", *rows]) + "\n"
        )
    return "\n".join(parts)


def test_the_page_of_the_catalogue_is_as_the_registry_says() -> None:
    assert PAGE.read_text() == page()


if __name__ == "__main__":
    PAGE.write_text(page())
