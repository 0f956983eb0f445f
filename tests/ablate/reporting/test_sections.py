"""The sections that a study's own plugin files bring."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

import ablate
from ablate.analysis.results import Results
from ablate.errors import InputError
from ablate.reporting.sections import sections_of
from tests.study_maker import make_study

PLUGIN = '''
from typing import ClassVar, Literal
from ablate.slots import Section

print("loaded")


class Remarks(Section):
    """What the author of the study has to say."""

    kind: Literal["remarks"] = "remarks"
    order: ClassVar[float] = 4.5
    title: ClassVar[str] = "Remarks of the author"

    def render(self, page):
        return f"There are {len(page.results.verdicts())} verdicts."
'''


def study(folder: Path, *plugins: Path) -> Results:
    return Results(make_study(folder / "study", seeds=2, steps=20, plugins=plugins))


def test_a_section_of_a_single_file_is_in_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin = tmp_path / "remarks.py"
    plugin.write_text(PLUGIN)
    page = ablate.report(study(tmp_path, plugin)).read_text(encoding="utf-8")
    assert "Remarks of the author" in page
    assert "There are 5 verdicts." in page
    assert capsys.readouterr().out == ""


def test_a_section_may_be_called_as_a_table_or_as_the_page_is(tmp_path: Path) -> None:
    plugin = tmp_path / "remarks.py"
    plugin.write_text("".join(PLUGIN.replace("Remarks(", f"{kind.title()}(").replace('"remarks"', f'"{kind}"')
                              for kind in ("content", "trials_table")))  # fmt: skip
    page = ablate.report(study(tmp_path, plugin)).read_text(encoding="utf-8")
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    for kind in ("content", "trials-table"):
        assert f'<section id="{kind}-section"' in page
        assert f'<li><a href="#{kind}-section">Remarks of the author</a></li>' in page


def test_a_section_can_be_named_for_one_report(tmp_path: Path) -> None:
    plugin = tmp_path / "remarks.py"
    plugin.write_text(PLUGIN)
    results = study(tmp_path)
    assert "Remarks of the author" in ablate.report(results, plugins=[plugin]).read_text(encoding="utf-8")
    assert "Remarks of the author" not in ablate.report(results).read_text(encoding="utf-8")
    plugin.write_text("raise OSError('no')\n")
    with pytest.raises(InputError, match=r"S107.*remarks\.py` fails to import: OSError: no"):
        ablate.report(results, plugins=[plugin])


def test_the_starters_section_shows_its_figure_and_its_table(tmp_path: Path) -> None:
    plugin = tmp_path / "starter_section.py"
    plugin.write_text((files("ablate") / "starter" / "slots" / "section.py").read_text(encoding="utf-8"))
    page = ablate.report(study(tmp_path, plugin)).read_text(encoding="utf-8")
    part = page[page.index('<section id="my-component"') :].split("</section>")[0]
    assert 'aria-label="The best trials by val/loss"' in part
    assert ">val/loss (nats)<" in part
    assert '<caption id="my-component-table-caption">The 5 best trials</caption>' in part
    assert part.count("<tr>") == 6


def test_a_file_that_is_gone_is_noted(tmp_path: Path) -> None:
    page = ablate.report(study(tmp_path, tmp_path / "private" / "gone.py")).read_text(encoding="utf-8")
    assert '<p class="note">The plugin gone.py is not there any more; sections that it brings are left out.</p>' in page
    assert "private/gone.py" not in page


def test_a_file_that_no_longer_works_is_noted(tmp_path: Path) -> None:
    broken, clash = tmp_path / "broken.py", tmp_path / "clash.py"
    broken.write_text("raise OSError('no')\n")
    clash.write_text(PLUGIN.replace('"remarks"', '"verdict"'))
    sections, notes = sections_of(study(tmp_path, broken, clash).plan)
    assert notes[0] == "Sections are left out: the plugin `broken.py` fails to import: OSError: no."
    assert notes[1].startswith("Sections are left out: two plugins bring a section called `verdict`: ")
    assert [section.title for section in sections].count("Verdict") == 1


def test_a_study_without_plugins_has_the_installed_sections(tmp_path: Path) -> None:
    plan = study(tmp_path).plan
    sections, notes = sections_of(plan)
    assert notes == []
    assert {"Verdict", "Effects", "All trials"} <= {section.title for section in sections}
    del plan["plugins"]
    assert len(sections_of(plan)[0]) == len(sections)
