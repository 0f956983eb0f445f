"""The report as files."""

from __future__ import annotations

import csv
import html
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from tempfile import gettempdir
from typing import Any, ClassVar, Literal

import pandas as pd
import pytest
from markupsafe import Markup

from ablate.analysis.results import Results
from ablate.reporting import write, writing
from ablate.reporting.tables import Table
from ablate.slots import Norm, Page, Section
from tests.study_maker import HOSTILE, hold_lock, make_study

Report = Callable[..., Path]
FILES = ["effects.csv", "effects.md", "effects.tex", "report.html", "report.json", "trials.csv"]


class _Reader(HTMLParser):
    """Tables by id, as rows of the texts of their cells; and all text."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.text: list[str] = []
        self._rows: list[list[str]] | None = None
        self._inside = False
        self._skip = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self._skip = tag in ("style", "script")
        if tag == "table" and found.get("id"):
            self._rows = self.tables.setdefault(str(found["id"]), [])
        if tag == "tr" and self._rows is not None:
            self._rows.append([])
        if tag in ("td", "th") and self._rows is not None:
            self._rows[-1].append("")
            self._inside = True
        if tag == "small" and self._inside and self._rows is not None:
            self._rows[-1][-1] += "|"

    def handle_endtag(self, tag: str) -> None:
        self._skip = False
        if tag in ("td", "th"):
            self._inside = False
        if tag == "table":
            self._rows = None

    def handle_data(self, data: str) -> None:
        if not self._skip:
            self.text.append(data)
        if self._inside and self._rows is not None:
            self._rows[-1][-1] += data


def read(path: Path) -> _Reader:
    reader = _Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader


def table(path: Path, name: str) -> list[dict[str, str]]:
    """A table of the page, by the heads of its columns."""
    head, *rows = read(path).tables[name]
    keys = [key.split("|")[0].strip() for key in head]
    return [dict(zip(keys, (cell.strip() for cell in row), strict=True)) for row in rows]


def records(path: Path, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.with_name(name).read_text(encoding="utf-8"))))


def test_the_files_lie_in_the_studys_folder_and_nothing_else_is_left(quickstart: Path) -> None:
    assert quickstart.name == "report.html"
    beside = sorted(path.name for path in quickstart.parent.iterdir())
    assert beside == sorted([*FILES, "experiment.yaml", "plan.json", "trials"])


def test_another_folder_is_made(tmp_path: Path, sections: list[Section]) -> None:
    results = Results(make_study(tmp_path / "study", seeds=2, steps=20))
    assert write(results, sections, tmp_path / "a" / "b") == tmp_path / "a" / "b" / "report.html"
    assert sorted(path.name for path in (tmp_path / "a" / "b").iterdir()) == FILES
    assert not (tmp_path / "study" / "report.html").exists()


def test_the_same_records_give_the_same_bytes(tmp_path: Path, quickstart: Path, full: Path) -> None:
    # In another process, with other hashes of texts, on another clock and in another folder.
    code = (
        "import sys; from pathlib import Path; from ablate.analysis.results import Results\n"
        "from ablate.reporting import write; from ablate.reporting.sections import sections_of\n"
        "sections = sections_of({})[0][::-1]\n"
        "for number, study in enumerate(sys.argv[2:]):\n"
        "    write(Results(Path(study)), sections, Path(sys.argv[1], str(number)))\n"
        "assert 'torch' not in sys.modules"
    )
    root = Path(__file__).parents[3]
    env = os.environ | {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "PYTHONPATH": f"{root}:{root / 'plugins'}"}
    studies = [quickstart.parent, full.parent]
    subprocess.run([sys.executable, "-c", code, tmp_path, *studies], check=True, env=env, timeout=300)
    for number, study in enumerate(studies):
        for name in FILES:
            assert (tmp_path / str(number) / name).read_bytes() == (study / name).read_bytes(), name


def test_the_pages_numbers_are_those_of_the_csv(interim: Path) -> None:
    shown = table(interim, "effects-arms")
    written = [record for record in records(interim, "effects.csv") if record["kind"] == "arm"]
    assert len(shown) == len(written) == 6
    for cells, record in zip(shown, written, strict=True):
        assert cells["arm"].removeprefix(cells["arm"][0]) == record["name"]
        assert cells["seeds"] == f"{record['pairs']}/{record['planned']}"
        for head, key in (("mean", "mean"), ("sd", "sd"), ("Δ", "effect"), ("p", "p_holm"), ("verdict", "verdict"),
                          ("diverged", "diverged"), ("params Δ", "parameters_delta")):  # fmt: skip
            assert cells[head].replace("–", "") == record[key], head
        interval = f"[{record['low']}, {record['high']}]" if record["low"] else "–"
        assert cells["95% CI"] == interval


def test_the_pages_trials_are_those_of_the_csv(interim: Path) -> None:
    shown, written = table(interim, "trials-table"), records(interim, "trials.csv")
    assert len(shown) == len(written) == 36
    for cells, record in zip(shown, written, strict=True):
        for head, key in (("seed", "seed"), ("end", "end"), ("val/loss", "val/loss"), ("scale", "factor.scale"),
                          ("tokens/s", "tokens_per_second"), ("val/bits_per_char", "val/bits_per_char")):  # fmt: skip
            assert cells[head].replace("–", "") == record[key], head
        assert cells["trial"] == record["trial"][:8]


def test_numbers_are_the_results_own(quickstart: Path) -> None:
    effects = Results(quickstart.parent).effects().set_index("arm")
    for record in records(quickstart, "effects.csv")[1:6]:
        row = effects.loc[record["arm"]]
        assert float(record["effect"]) == pytest.approx(row["effect"], abs=6e-4)
        assert float(record["low"]) == pytest.approx(row["low"], abs=6e-4)
        assert float(record["p_holm"]) == pytest.approx(row["p_holm"], rel=0.06)
        assert record["verdict"] == row["verdict"]


def test_the_factorial_csv_has_every_kind_of_effect(full: Path) -> None:
    kinds = pd.read_csv(full.with_name("effects.csv"))["kind"].value_counts().to_dict()
    assert kinds == {"arm": 16, "simple effect": 24, "interaction": 6, "main effect": 4, "secondary": 16}
    frame = Results(full.parent).simple_effects().set_index("name")
    words = {row["name"]: row["verdict"] for row in records(full, "effects.csv") if row["kind"] == "simple effect"}
    assert words == {name: row["verdict"] if row["judged"] else "" for name, row in frame.iterrows()}
    assert 0 < list(words.values()).count("") < 24
    text = " ".join(read(full).text)
    assert "large interaction" in text
    assert "scale=off at residual=none" in text
    assert full.with_name("effects.tex").read_text(encoding="utf-8").count("\\toprule") == 5


def test_a_level_null_stays_apart(hostile: Path) -> None:
    levels = pd.read_csv(hostile.with_name("trials.csv"))["factor.x<b>'\""]
    assert levels.notna().all()
    assert levels.nunique() == 8
    assert (levels == "(null)").sum() == 2


def test_hostile_texts_reach_the_page_escaped(hostile: Path) -> None:
    page = hostile.read_text(encoding="utf-8")
    assert page.count("<script>") == 1
    # Between tags a quotation mark needs no escape, and a figure's texts have none.
    elsewhere = re.sub(r"(<text[^>]*>)[^<]*</text>", r"\1", page)
    assert "alert('x')" not in elsewhere.replace(html.escape("alert('x')"), "")
    assert HOSTILE.split("\u202e", maxsplit=1)[0] in " ".join(read(hostile).text)
    assert "\u202e" not in page


@pytest.mark.parametrize("which", ["interim", "hostile"])
def test_nothing_private_gets_out(which: str, request: pytest.FixtureRequest) -> None:
    path = request.getfixturevalue(which)
    for name in FILES:
        text = path.with_name(name).read_text(encoding="utf-8")
        assert "somebody" not in text, name
        for private in (Path.home(), Path(gettempdir()), path.parent.parent):
            assert f"{private}/" not in text, name
    assert "…/model.py" in path.read_text(encoding="utf-8")


def test_logs_of_runs_that_did_not_finish_are_there(interim: Path) -> None:
    text = " ".join(read(interim).text)
    assert "scale=off, seed 3: RuntimeError: out of memory at …/model.py" in text
    assert "Traceback (most recent call last)" in text
    assert "placement=post, seed 1: loss above initial at step 39" in text
    assert "nonfinite at step 39; first in block.2.feed_forward at step 39: output not finite" in text
    assert "Each is missing data" in text


def test_diverged_runs_are_named_with_their_first_bad_module(interim: Path) -> None:
    over, bad = table(interim, "diverged-runs")
    assert (over["rule"], over["judged at step"], over["first bad step"]) == ("loss above initial", "39", "–")
    assert (bad["first bad step"], bad["first bad module"]) == ("39", "block.2.feed_forward")
    assert bad["what was bad"] == "output not finite"


STATES: dict[str, dict[str, Any]] = {
    "one seed": {"seeds": 1},
    "all diverged": {"seeds": 3, "outcomes": lambda *_: float("nan")},
    "the baseline diverged": {"seeds": 3, "diverged": {("baseline", 0), ("baseline", 1)}},
    "one trial alone": {
        "seeds": 2,
        "factors": {"a": [0, 1]},
        "waiting": {("baseline", 1), ("a=1", 0), ("a=1", 1)},
    },
    "equal arms": {"seeds": 3, "factors": {"a": [0, 1]}, "twins": {"a=1": "baseline"}},
    "a factorial that diverged": {"design": "full", "seeds": 2, "outcomes": lambda *_: float("inf")},
    "a factorial of one factor": {"design": "full", "seeds": 3, "factors": {"a": [0, 1, 2]}},
    "a factorial with a cell missing": {
        "design": "full",
        "seeds": 3,
        "factors": {"a": [0, 1], "b": [None, "null"]},
        "waiting": {("a=1, b=null", seed) for seed in range(3)},
        "excluded": [{"levels": {"a": 1, "b": "x"}, "why": "cannot work"}],
    },
    "an ablation path": {"design": "leave_one_out", "seeds": 3},
    "an ablation path of one seed": {"design": "add_one", "seeds": 1},
    "an ablation path that diverged": {
        "design": "add_one",
        "seeds": 2,
        "diverged": {("scale=off", 0), ("residual=none", 0), ("residual=none", 1)},
        "holes": {"ratio=1": "cannot work"},
    },
    "to be maximised": {"metric": "val/accuracy", "goal": "max", "smallest_effect": 0.5, "seeds": 2},
    "two steps": {"seeds": 2, "steps": 2},
}


@pytest.mark.parametrize("state", STATES)
def test_every_state_gives_a_report_without_numbers_that_do_not_exist(report: Report, state: str) -> None:
    path = report(**({"steps": 40} | STATES[state]))
    text = html.unescape(
        re.sub(r"<style>.*?</style>|<script>.*?</script>|<[^>]+>", " ", path.read_text("utf-8"), flags=re.S)
    )
    assert not re.search(r"\bnan\b|\binf\b|\bNaN\b(?! or infinite)|<NA>|\bNone\b(?! of \d)", text), state
    assert not re.search(r"\[\s*,|,\s*\]|\[-, |±nan", text)
    for record in records(path, "effects.csv"):
        assert (record["low"] == "") == (record["high"] == "")
        if record["pairs"] and int(record["pairs"]) < 2:
            assert record["low"] == record["p"] == ""


def test_a_running_study_is_interim(tmp_path: Path, sections: list[Section]) -> None:
    folder = make_study(tmp_path / "study", seeds=2, steps=20, running={("scale=off", 1)})
    with hold_lock(folder):
        page = write(Results(folder), sections).read_text(encoding="utf-8")
    assert "INTERIM" in page
    assert "1 running" in page
    assert "1 of 12 trials has not ended" in page


def test_a_hundred_trials_take_less_than_a_megabyte(full: Path, report: Report) -> None:
    assert full.stat().st_size < 1_000_000
    many = report(seeds=10, steps=60, factors={"a": list(range(10))})
    assert len(records(many, "trials.csv")) == 100
    assert many.stat().st_size < 1_000_000


def test_more_than_200_trials_are_named_and_all_in_the_csv(report: Report) -> None:
    path = report(seeds=21, steps=20, factors={"a": list(range(10))})
    assert len(table(path, "trials-table")) == 200
    assert len(records(path, "trials.csv")) == 210
    said = " ".join(read(path).text)
    assert "the first 200 of 210 rows; the page shows the others with JavaScript; trials.csv, beside" in said


def test_a_page_that_would_be_too_large_says_what_it_leaves_out_and_where(
    tmp_path: Path, sections: list[Section], monkeypatch: pytest.MonkeyPatch
) -> None:
    results = Results(make_study(tmp_path / "study", seeds=30, steps=20, factors={"a": list(range(8))}))
    whole = write(results, sections).read_text(encoding="utf-8")
    assert "leaves out" not in whole
    monkeypatch.setattr(writing, "MOST_BYTES", len(whole.encode()) - 1)
    first = write(results, sections).read_text(encoding="utf-8")
    assert "this page leaves out the curves of single trials (means and bands are of all trials).<" in first
    assert "Single seeds are left out." in first
    assert "a faint dot for each seed" in first
    assert len(first.encode()) < len(whole.encode())
    monkeypatch.setattr(writing, "MOST_BYTES", 1000)
    least = write(results, sections).read_text(encoding="utf-8")
    assert all(html.escape(words) in least for words in writing.REDUCTIONS.values())
    for said in (
        "These are the first 200 of 240 rows; the others are left out",
        "The same table as text is left out",
        "The resolved plan is left out",
        "Left out, to keep the page small: it has a line for each seed.",
    ):
        assert said in least
    assert "a faint dot for each seed" not in least
    assert 'type="application/json"' not in least
    assert len(least.encode()) < 0.7 * len(whole.encode())


@pytest.fixture(scope="module")
def lost(report: Report) -> Path:
    """The report of a study with an arm whose every run failed."""
    return report(seeds=3, steps=40, failed={("placement=post", seed) for seed in range(3)})


def test_an_arm_without_data_says_why_and_has_no_panel(lost: Path) -> None:
    text = " ".join(read(lost).text)
    assert " is undecided: no data: 3 of 3 seeds failed." in text
    assert "Without a seed to compare, and left out: placement=post." in text
    assert "Not judged: placement=post has no gradients on record." in text
    assert "Not measured in placement=post: largest attention logit, attention entropy" in text
    assert next(row for row in table(lost, "effects-arms") if "post" in row["arm"])["agree"] == "–"


def test_nothing_is_said_of_what_there_is_not(tmp_path: Path, sections: list[Section]) -> None:
    lost = {(f"a={level}", seed) for level in (1, 2) for seed in (0, 1)}
    folder = make_study(tmp_path / "study", seeds=2, steps=20, factors={"a": [0, 1, 2]}, failed=lost)
    text = " ".join(read(write(Results(folder), sections)).text)
    assert "No seed has completed both an arm and the baseline." in text


def test_speed_has_no_decimals_in_print_and_a_caveat(quickstart: Path) -> None:
    shown = table(quickstart, "effects-arms")
    written = [record for record in records(quickstart, "effects.csv") if record["kind"] == "arm"]
    assert all(re.fullmatch(r"[+-]\d+|–", row["tokens/s Δ"]) for row in shown)
    assert all(re.fullmatch(r"[+-]\d+\.\d|", row["speed_delta"]) for row in written)
    assert "tokens/s depends on what else the machine did" in " ".join(read(quickstart).text)


def test_the_entropy_of_the_data_has_its_unit_and_stuck_is_defined(quickstart: Path) -> None:
    page = quickstart.read_text(encoding="utf-8")
    assert "<dt>data: unigram entropy</dt><dd>3.24 nats</dd>" in page
    assert "<dt>data: ceiling accuracy</dt><dd>1</dd>" in page
    assert "<dt>Stuck</dt><dd>A run whose final loss on the evaluation set is within 0.05 nats of the unigram" in page


def test_the_file_that_an_experiment_extends_is_shown_or_said_to_be_missing(
    tmp_path: Path, sections: list[Section]
) -> None:
    made = make_study(tmp_path / "study", seeds=2, steps=20, experiment="extends: base.yaml\nname: small\n")
    page = write(Results(made), sections).read_text(encoding="utf-8")
    assert "extends: base.yaml\nname: small</pre>" in page
    assert "It extends a file that is not on record" in page
    (made / "extended.yaml").write_text("task: {path: /home/somebody/<data>.txt}\n")
    page = write(Results(made), sections).read_text(encoding="utf-8")
    assert re.search(r"<h3>The file that it extends</h3>\n<pre tabindex=\"0\">task: .*&lt;data&gt;\.txt}</pre>", page)
    assert "somebody" not in page
    assert "not on record" not in page


def test_a_complete_study_has_no_table_of_what_did_not_finish(quickstart: Path, lost: Path) -> None:
    assert "ends" not in read(quickstart).tables
    assert "ends" in read(lost).tables


def test_what_a_run_needs_beside_the_experiment_is_named(tmp_path: Path, sections: list[Section]) -> None:
    folder = make_study(tmp_path / "study", seeds=2, steps=20, factors={"a": [0, 1]})
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    plan["plugins"] = ["/home/somebody/thesis/my_norm.py"]
    plan["data"]["facts"]["vocabulary"] = 95.0
    for arm in plan["arms"]:
        arm["config"]["task"]["path"] = "../corpus/shakespeare.txt"
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    page = write(Results(folder), sections).read_text(encoding="utf-8")
    assert "these files too: <code>my_norm.py</code>, <code>shakespeare.txt</code>." in page
    assert "20 steps of 1,024 tokens each" in page
    assert "data: vocabulary" not in page
    assert "somebody" not in page


class Note(Section):
    """A section of someone else's."""

    kind: Literal["my_note"] = "my_note"
    order: ClassVar[float] = 4.5
    title: ClassVar[str] = "My <note>"

    def render(self, page: Page) -> str:
        """Markup made by hand, and a text in it that is not."""
        return Markup("<p>{} arms &amp; {}</p>").format(len(page.study.arms), "<b>")


class Plain(Section):
    """A section that gives plain text."""

    kind: Literal["plain"] = "plain"
    order: ClassVar[float] = 0.5
    title: ClassVar[str] = "Plain"

    def render(self, page: Page) -> str:
        """No markup."""
        return "<i>text</i>"


class Empty(Section):
    """A section that has nothing to say."""

    kind: Literal["empty"] = "empty"
    order: ClassVar[float] = 0.1
    title: ClassVar[str] = "Never seen"

    def render(self, page: Page) -> str:
        """Nothing."""
        return ""


def test_anyones_section_stands_where_it_says(tmp_path: Path, sections: list[Section]) -> None:
    results = Results(make_study(tmp_path / "study", seeds=2, steps=20))
    page = write(results, [*sections, Note(), Plain(), Empty()]).read_text(encoding="utf-8")
    anchors = re.findall(r'<section id="([^"]+)"', page)
    assert anchors == [
        "plain", "verdict", "effects", "seeds", "trends", "gradient-flow", "my-note", "stability", "curves",
        "fairness", "unfinished", "trials", "reproduce",
    ]  # fmt: skip
    assert "<p>6 arms &amp; &lt;b&gt;</p>" in page
    assert "&lt;i&gt;text&lt;/i&gt;" in page
    assert '<a href="#my-note">My &lt;note&gt;</a>' in page
    assert "Never seen" not in page


def test_only_sections_make_a_report(tmp_path: Path) -> None:
    class Other(Norm):
        """No section."""

        kind: Literal["other"] = "other"

        def build(self, at: Any) -> Any:
            """Nothing."""

    results = Results(make_study(tmp_path / "study", seeds=2, steps=20))
    with pytest.raises(TypeError, match="a section of the report is a Section, not a Other"):
        write(results, [Other()])
    assert not (tmp_path / "study" / "report.html").exists()


def test_a_section_that_fails_leaves_the_old_report(tmp_path: Path, sections: list[Section]) -> None:
    class Broken(Section):
        """Fails."""

        kind: Literal["broken"] = "broken"
        order: ClassVar[float] = 1
        title: ClassVar[str] = "Broken"

        def render(self, page: Page) -> str:
            """Never ends well."""
            raise ZeroDivisionError

    results = Results(make_study(tmp_path / "study", seeds=2, steps=20))
    folder = write(results, sections).parent
    before = {name: (folder / name).read_bytes() for name in FILES}
    with pytest.raises(ZeroDivisionError):
        write(results, [*sections, Broken()])
    assert {name: (folder / name).read_bytes() for name in FILES} == before
    assert not list(folder.glob(".*"))


@pytest.mark.parametrize("kinds", [("figure", "figure"), ("figure", "table"), ("table", "table")])
def test_two_figures_or_tables_cannot_share_a_name(tmp_path: Path, kinds: tuple[str, str]) -> None:
    class Twice(Section):
        """Shows two things under one name."""

        kind: Literal["twice"] = "twice"
        order: ClassVar[float] = 1
        title: ClassVar[str] = "Twice"

        def render(self, page: Page) -> str:
            """The same name again."""
            from matplotlib.figure import Figure

            made = {
                "figure": lambda: page.figure(Figure(), "one", "alt"),
                "table": lambda: page.table(Table([], []), "one", "caption"),
            }
            return "".join(made[kind]() for kind in kinds)

    with pytest.raises(ValueError, match="'one'"):
        write(Results(make_study(tmp_path / "study", seeds=2, steps=20)), [Twice()])
