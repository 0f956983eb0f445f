"""``ablate report``: the answer."""

from __future__ import annotations

import shlex
from pathlib import Path

import ablate
from ablate.analysis.predictions import predicted
from ablate.cli.output import console, print_json
from ablate.errors import InputError
from ablate.records.finding import RUNS, changed_since, find_study


def write_report(study: Path, runs: Path, out: Path | None, plugins: list[Path], *, as_json: bool) -> None:
    """Write the report and print its verdicts and path."""
    folder = find_study(study, runs)
    results = ablate.results(folder.path)
    try:
        path = ablate.report(results, out=out, plugins=plugins)
    except OSError as error:
        if out is not None:
            raise
        words = f"a report cannot be written to `{folder.path}`: {error.strerror or error}"
        raise InputError.one("S113", words, help="write it elsewhere: `--out DIR`") from error
    verdicts = results.verdicts()
    foretold = results.predictions().to_dict("records")
    if as_json:
        listed = [{"arm": each.name, "verdict": each.word, "sentence": each.sentence} for each in verdicts]
        print_json({"report": str(path), "complete": results.complete, "verdicts": listed, "predictions": foretold})
        return
    shown = console()
    for verdict in verdicts:
        shown.print(verdict.sentence)
    for each in foretold:
        shown.print(f"predicted: {predicted(each)}: {each['judged']}")
    for caveat in results.caveats():
        shown.print(f"note: {caveat}")
    if changed_since(study, folder):
        words = "has changed since this study was run; the report is of the file as it was then"
        again = shlex.join(["ablate", "run", str(study), *([] if runs == RUNS else ["--runs", str(runs)])])
        shown.print(f"note: {study} {words}; `{again}` takes the change over")
    shown.print(f"report: {path}")
