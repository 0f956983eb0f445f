"""How often do verdicts mislead, and do intervals cover what they say? Simulated studies of known truth tell.

Run as ``python -m tests.studies.calibration --out reports/calibration``; it takes some minutes on one core and writes
the tables that the README links to.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from ablate.analysis.pairing import ALPHA
from ablate.analysis.prose import number
from ablate.analysis.skewness import ALARM, FEWEST
from tests.studies.simulation import ALIKE, CHECKED, EFFECTS, NONE, SKEWED, SMALLEST, STUDIES, Found, cases, simulate

COVERAGE = (0.93, 0.97)
"""What share of 95% intervals must cover their effect where noise is normal."""

REQUIRED = ("null", "judged")
"""The sections whose cases must not miss."""

Column = Callable[[Found], object]


def misses(found: Found) -> list[str]:
    """What a case misses of the requirements, in words; a share misses where its whole Monte-Carlo interval does."""
    said = []
    if found.false.low > ALPHA:
        said.append(f"better or worse is false in {found.false}% of studies")
    if found.case.shapes.name == "normal" and not COVERAGE[0] <= found.alone.value <= COVERAGE[1]:
        said.append(f"95% intervals cover {found.alone}%")
    return said


def sections(studies: int = STUDIES) -> dict[str, list[Found]]:
    """Every case, by the section that its row stands in."""
    wanted = {"null": cases(ALIKE, effects=False), "judged": cases(ALIKE, effects=True),
              "skewed": cases(SKEWED, effects=False)}  # fmt: skip
    return {name: [simulate(case, studies) for case in group] for name, group in wanted.items()}


WHERE: dict[str, Column] = {
    "noise": lambda found: found.case.shapes.name,
    "arms": lambda found: found.case.arms,
    "seeds": lambda found: found.case.seeds,
}
RULED: dict[str, Column] = {
    "false better/worse": lambda found: found.false,
    "": lambda found: "**miss**" if misses(found) else "holds",
}
COVERED: dict[str, Column] = {
    "95% interval covers": lambda found: found.alone,
    "all simultaneous cover": lambda found: found.together,
}
COLUMNS: dict[str, dict[str, Column]] = {
    "null": WHERE | RULED | COVERED | {"warns": lambda found: found.warned},
    "judged": WHERE | RULED | {
        "wrong direction": lambda found: found.turned,
        "false no practical difference": lambda found: found.equal,
        "any of these": lambda found: found.misled,
        "effects that matter found": lambda found: found.told,
    },
    "skewed": WHERE | RULED | COVERED | {
        "warns": lambda found: found.warned,
        "warns of the false": lambda found: found.warned_false,
    },
}  # fmt: skip


def table(rows: Sequence[Found], columns: Mapping[str, Column]) -> str:
    """Rows as Markdown."""
    lines = [columns, ["---"] * len(columns), *([str(cell(row)) for cell in columns.values()] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page(found: Mapping[str, Sequence[Found]], studies: int) -> str:
    """The whole page."""
    every = [row for rows in found.values() for row in rows]
    checked = sum(row.case.arms * min(CHECKED, studies) for row in every)
    truths = ", ".join(f"{value:g}" for value in EFFECTS)
    missed = "\n".join(textwrap.fill(line, 120, subsequent_indent="  ") for line in _missed(found))
    return TEXT.format(
        studies=studies, missed=missed, checked=checked, disagree=sum(row.disagreements for row in every), none=NONE,
        smallest=SMALLEST, truths=truths, fewest=FEWEST, alarm=ALARM,
        **{name: table(rows, COLUMNS[name]) for name, rows in found.items()},
    )  # fmt: skip


def _missed(found: Mapping[str, Sequence[Found]]) -> Iterator[str]:
    """What misses: of what is required each case, of skewed differences how many."""
    required = [row for name in REQUIRED for row in found[name]]
    for row in required:
        yield from (f"- {_named(row)}: {said}." for said in misses(row))
    if not any(misses(row) for row in required):
        yield f"- Of what is required, nothing in {len(required)} cases."
    skewed = found["skewed"]
    worst = max(skewed, key=lambda row: row.false.value)
    yield (
        f"- Of {len(skewed)} cases with skewed differences, {sum(bool(misses(row)) for row in skewed)}. The worst: "
        f"{_named(worst)}, where {worst.false}% of studies falsely call an arm better or worse. The report warns in "
        f"{worst.warned}% of them."
    )


def _named(row: Found) -> str:
    return f"{row.case.shapes.name}, {number(row.case.arms, 'arm')}, {number(row.case.seeds, 'seed')}"


TEXT = """# Are the verdicts calibrated?

Simulated studies of known truth, judged as a report judges them. Made by

```console
python -m tests.studies.calibration --out reports/calibration
```

## How to read it

A row is one kind of study, drawn {studies:,} times. An arm's outcome in a seed is a part that all arms of the seed
share, noise of its own with mean 0 and variance 1, and the arm's effect. Every number is a percentage with its
Monte-Carlo interval of 95%: of studies, but for *95% interval covers* and *effects that matter found*, which are of
effects.

*False better/worse*: some arm of the study is called better or worse, size uncertain or not, and is not. However many
arms there are, that may happen in 5% of studies. A row holds unless its whole Monte-Carlo interval is above 5%, or 95%
intervals cover less than 93% or more than 97% under normal noise.

{checked:,} of the effects were judged a second time, one by one, by the functions that a report uses: {disagree} of
them differ.

## What misses

{missed}

## No effects

Arms and baseline draw their noise from one distribution, each for itself, as it is where a change has no effect. The
smallest effect that matters is {none:g}, so that no false word hides behind *no practical difference*. Under skewed and
heavy-tailed noise verdicts err on the side of *undecided*.

{null}

## True effects

The smallest effect that matters is {smallest:g}, and the effects of the arms are {truths}, in turn: some do not matter,
one is at the very edge, one matters. *Better* and *worse* are false too where the size that they claim is not there.

{judged}

## Skewed differences

No effects, and noise whose shape differs between the arms and the baseline. Nothing is promised here. Few seeds then
mostly lie to one side of the true mean, with an interval that is too narrow; and the more arms there are, the further
out in the tail intervals must reach, and the worse it is.

{skewed}

## The warning

A report warns of skewed differences if the largest skewness (g1) of an arm, or the mean over all arms, is beyond what
normal noise keeps within in all but {alarm:.0%} of studies of as many arms and seeds. *Warns* under *No effects* is how
often it does so where intervals hold: {alarm:.0%} under normal noise, by construction, and more often where all arms
alike are skewed or heavy-tailed. *Warns* under *Skewed differences* is how often it notices what it is for, and *warns
of the false* how often it does in the studies that falsely call an arm better or worse. With one arm or few seeds it is
mostly blind, and below {fewest} seeds a report does not try: silence is no proof of symmetry.
"""


def main() -> None:
    """Run the study and write its page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="a folder for README.md; default: print it")
    parser.add_argument("--studies", type=int, default=STUDIES, help="simulated studies of each case")
    asked = parser.parse_args()
    text = page(sections(asked.studies), asked.studies)
    if asked.out is None:
        print(text)
    else:
        asked.out.mkdir(parents=True, exist_ok=True)
        (asked.out / "README.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
