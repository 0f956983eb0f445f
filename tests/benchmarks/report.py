"""What the report of a large study takes: bytes, seconds, memory, and how fast a browser is with it.

Run as ``python -m tests.benchmarks.report``, or with the names of studies. Their records are made up
(:mod:`tests.study_maker`), which takes longer than the reports do, and is not measured. Seconds are those of the
process that writes the report, of the processor and by the clock, which other programs lengthen; the browser's
milliseconds are the processor's in the page's own thread.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from tests.study_maker import make_study

STUDIES: Mapping[str, dict[str, Any]] = {
    "100": {"factors": {"a": list(range(10))}, "seeds": 10},
    "1000": {"factors": {"a": list(range(100))}, "seeds": 10},
    "1000-few-arms": {"factors": {"a": list(range(5))}, "seeds": 200},
    "1000-many-arms": {"factors": {"a": list(range(334))}, "seeds": 3},
    "1000-factorial": {"design": "full", "factors": {key: [0, 1, 2, 3] for key in "abc"}, "seeds": 16},
    "5000": {"factors": {"a": list(range(500))}, "seeds": 10},
    "10000": {"factors": {"a": list(range(500))}, "seeds": 20},
}
"""The studies by their trials, all of 200 steps; the arms are many or few, of one factor or of three."""
WRITE = """\
import json, resource, sys, time
from pathlib import Path
from ablate.analysis.results import Results
from ablate.reporting import write
from ablate.reporting.sections import sections_of
page = write(Results(Path(sys.argv[1])), sections_of({"plugins": []})[0])
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"page": str(page), "cpu": used.ru_utime + used.ru_stime, "memory": used.ru_maxrss * 1024}))
"""
ACT = """async (what) => {
  const head = document.querySelectorAll("#trials-table thead th button")[5];
  const search = document.querySelector(".tools[data-table=trials-table] input[type=search]");
  search.value = "complete 7";
  if (what === "sort") head.click(); else search.dispatchEvent(new Event("input"));
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
}"""
"""A click or a key, up to the next frame."""


def written(study: Path, profile: bool) -> dict[str, Any]:
    """Write a study's report in a process of its own, and say what it took."""
    began = time.perf_counter()
    how = ["-m", "cProfile", "-s", "tottime"] if profile else []
    script = study.parent / "write.py"
    script.write_text(WRITE, encoding="utf-8")
    ran = subprocess.run([sys.executable, *how, script, study], check=True, capture_output=True, text=True)
    said, _, listing = ran.stdout.partition("\n")
    print("\n".join(listing.splitlines()[:50]), file=sys.stderr)
    told: dict[str, Any] = json.loads(said)
    return told | {"wall": time.perf_counter() - began}


def opened(page: Path) -> dict[str, float]:
    """Load a page in Chromium, sort its trials and filter them: milliseconds of the processor in the page's thread."""
    chromium = shutil.which("chromium")
    arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        tab = browser.new_page(viewport={"width": 1280, "height": 800})
        tools = tab.context.new_cdp_session(tab)
        tools.send("Performance.enable", {"timeDomain": "threadTicks"})

        def spent() -> float:
            metrics = tools.send("Performance.getMetrics")["metrics"]
            return 1000 * float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))

        tab.goto(page.as_uri())
        took = {"load": spent()}
        for what in ("sort", "filter"):
            before = spent()
            tab.evaluate(ACT, what)
            took[what] = spent() - before
        browser.close()
    return took


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("studies", nargs="*", default=list(STUDIES), help=", ".join(STUDIES))
    options.add_argument("--profile", action="store_true", help="list the functions by the time in them")
    asked = options.parse_args()
    print(f"{'trials':>15} {'MB':>6} {'s cpu':>7} {'s wall':>7} {'MiB':>6} {'load':>8} {'sort':>8} {'filter':>8}")
    for name in asked.studies:
        with tempfile.TemporaryDirectory() as folder:
            told = written(make_study(Path(folder) / "study", steps=200, **STUDIES[name]), asked.profile)
            page = Path(told["page"])
            took = opened(page)
            print(
                f"{name:>15} {page.stat().st_size / 1e6:6.2f} {told['cpu']:7.1f} {told['wall']:7.1f}"
                f" {told['memory'] / 2**20:6.0f} " + " ".join(f"{took[key]:5.0f} ms" for key in took),
                flush=True,
            )


if __name__ == "__main__":
    main()
