"""The long form of each diagnostic, as ``ablate explain`` prints it.

Each begins with a sentence that names the problem, says why it is one, and ends with an indented example under
``Wrong:`` and one under ``Right:``.
"""

from __future__ import annotations

from collections.abc import Mapping

from ablate.experiment.explanations.data import DATA
from ablate.experiment.explanations.designs import DESIGNS
from ablate.experiment.explanations.grid import GRID
from ablate.experiment.explanations.reading import READING
from ablate.experiment.explanations.schema import SCHEMA
from ablate.experiment.explanations.sources import SOURCES
from ablate.experiment.explanations.study import STUDY
from ablate.experiment.explanations.tables import TABLES
from ablate.experiment.explanations.warnings import WARNINGS

FAMILIES: Mapping[str, Mapping[str, str]] = {
    "reading YAML": READING,
    "keys, plugins and the command": SCHEMA,
    "the task's data": dict(sorted({**DATA, **TABLES, **SOURCES}.items())),
    "a study's records": STUDY,
    "factors and arms": {**GRID, **DESIGNS},
    "warnings": WARNINGS,
}
"""The texts by what they are about."""

EXPLANATIONS: Mapping[str, str] = {code: text for texts in FAMILIES.values() for code, text in texts.items()}
"""The text for each code: what is wrong, why it is, and how to mend it."""


def first_sentence(code: str) -> str:
    """What the problem is, in a sentence.

    Raises:
        KeyError: there is no such code.
    """
    return EXPLANATIONS[code].split("\n")[0]
