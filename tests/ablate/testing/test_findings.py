"""For every check a component that breaks it and nothing else, and what is said of it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from ablate.registry import FILE, Registry
from ablate.slots import Component
from ablate.testing import ContractError, Finding, check, checks, instance_of
from ablate.testing.contract import rules
from tests.ablate.testing.broken import BROKEN, FACTOR, module, norm


def component(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, name: str = "mine") -> type[Component]:
    """The class ``Mine`` of a plugin file, as the registry would bring it in if it were sound."""
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(f"{FILE}{name}", path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, made)
    monkeypatch.chdir(folder)
    spec.loader.exec_module(made)
    found: type[Component] = made.Mine
    return found


def failing(cls: type[Component]) -> list[Finding]:
    return [finding for finding in check(cls) if not finding.ok]


@pytest.mark.parametrize(("slot", "rule"), BROKEN, ids=str)
def test_what_breaks_one_rule_fails_that_check_alone(
    slot: str, rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = rule.split(",", maxsplit=1)[0]
    # A file of its own: whether it can be imported alone is asked once a file.
    found = failing(component(tmp_path, monkeypatch, BROKEN[slot, rule], f"{slot}_{len(rule)}_{name}"))
    assert [each.check for each in found] == [name], "\n".join(map(str, found))
    assert found[0].component == f"{slot}: mine"


def test_every_rule_is_broken_by_one() -> None:
    broken = {rule.split(",")[0] for _, rule in BROKEN}
    assert broken == {rule.name for rule in rules()}
    otherwise = {rule.split(",")[0] for _, rule in BROKEN if rule.endswith("declared otherwise")}
    assert otherwise == {rule.name for rule in rules() if rule.otherwise}


def told(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> list[str]:
    return [str(finding) for finding in failing(component(folder, monkeypatch, text))]


def test_a_finding_says_what_was_expected_what_was_got_and_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = BROKEN["norm", "gradient"]
    line = text.splitlines().index("class Mine(Norm):") + 1
    assert told(tmp_path, monkeypatch, text) == [
        f"mine.py:{line}: norm: mine: gradient: expected a finite gradient to every parameter, not zero throughout; "
        "got no gradient for `spare` in a block"
    ]


def test_an_exception_is_found_at_its_own_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = BROKEN["feed_forward", "autocast"]
    line = text.splitlines().index("            raise TypeError('types are mixed')") + 1
    assert told(tmp_path, monkeypatch, text) == [
        f"mine.py:{line}: feed_forward: mine: autocast: expected the same shapes, finite, under bfloat16 autocast; "
        "got TypeError: types are mixed"
    ]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (("norm", "instance"), "got `eps`, which is required and has no example"),
        (("norm", "fields"), "expected a docstring under each option; got nothing under `eps`"),
        (("norm", "source"), "got no `Source:` in the docstring"),
        (("norm", "imports"), "got draws from Python's global generator"),
        (
            ("norm", "causal, declared otherwise"),
            "expected some output to depend on a later token in training, as is declared; got none that does",
        ),
        (("norm", "builds"), "got ImpossibleError: no width is right"),
        (("norm", "meta"), "got `gain` on the device cpu in a block"),
        (("mixer", "crosses"), "got an output that no change of the memory moves"),
        (("probe", "measures"), "got readings of `size`, which `units` does not name"),
        (("schedule", "factor"), "got 2.0 at step 0 of 1"),
        (("loss", "ignored"), "got nan where all targets are ignored"),
        (("task", "metrics"), "got metrics ['val/accuracy'] in place of ['val/loss']"),
    ],
    ids=str,
)
def test_what_is_said(key: tuple[str, str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, name = BROKEN[key], f"said_{key[1].split(',')[0]}"
    (finding,) = failing(component(tmp_path, monkeypatch, text, name))
    assert str(finding).endswith(message)


def test_what_is_right_has_no_failing_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cls = component(tmp_path, monkeypatch, norm(""), "right")
    found = check(cls)
    assert [finding for finding in found if not finding.ok] == []
    assert len({finding.check for finding in found}) == len(found) > 25
    assert str(found[0]) == (
        "norm: mine: imports: ok: a module that a fresh interpreter imports alone, and that changes nothing for others"
    )


def test_a_component_with_options_is_checked_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = module(
        "Norm",
        "return x * self.factor",
        options="factor: float = 1.0\n'''Times.'''",
        build=FACTOR.format("1 / self.factor"),
    )
    cls = component(tmp_path, monkeypatch, text)
    assert failing(cls) == []
    found = [finding for finding in check(cls.model_validate({"factor": 0.0})) if not finding.ok]
    assert {finding.got for finding in found if finding.check == "builds"} == {
        "ZeroDivisionError: float division by zero"
    }


def test_checks_are_callables_with_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cls = component(tmp_path, monkeypatch, BROKEN["norm", "source"], "called")
    by_name = {str(each): each for each in checks(cls)}
    by_name["causal"]()
    with pytest.raises(ContractError, match=r"norm: mine: source: expected the paper, as `Source: Author year, Title`"):
        by_name["source"]()


def test_required_options_come_from_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = norm("    eps: float = Field(examples=[0.5])\n    '''Added.'''\n")
    cls = component(tmp_path, monkeypatch, text, "exampled")
    assert instance_of(cls) == cls.model_validate({"eps": 0.5})
    bare = component(tmp_path, monkeypatch, BROKEN["norm", "instance"], "bare")
    with pytest.raises(ContractError, match="got `eps`, which is required and has no example"):
        instance_of(bare)


def test_one_of_two_options_comes_from_its_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = norm(
        "    a: int | None = None\n    '''One.'''\n    b: int | None = Field(None, examples=[3])\n    '''Other.'''\n\n"
        "    def model_post_init(self, context):\n"
        "        if (self.a is None) == (self.b is None):\n            raise ValueError('give `a` or `b`')\n"
    )
    cls = component(tmp_path, monkeypatch, text, "one_of_two")
    assert instance_of(cls) == cls.model_validate({"b": 3})


def test_pytest_runs_the_checks_of_a_plugin(tmp_path: Path) -> None:
    (tmp_path / "my_norm.py").write_text(norm(""))
    (tmp_path / "test_my_norm.py").write_text(
        "import pytest\nimport ablate.testing\nfrom my_norm import Mine\n\n"
        "@pytest.mark.parametrize('check', ablate.testing.checks(Mine), ids=str)\n"
        "def test_contract(check):\n    check()\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-k",
        "causal or shape",
    ]
    run = subprocess.run([*command, str(tmp_path)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
    assert "2 passed, 27 deselected" in run.stdout


def test_the_registry_gives_what_stands_in_options() -> None:
    registry = Registry.installed()
    found = check(registry.get("norm", "layer"), registry)
    assert [str(finding) for finding in found if not finding.ok] == []


def test_a_class_without_kind_or_slot_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = norm("").replace('    kind: Literal["mine"] = "mine"\n', "")
    (finding,) = failing(component(tmp_path, monkeypatch, text, "kindless"))
    assert (finding.check, finding.component, finding.got) == ("sound", "norm: Mine", "no `kind`")
    text = norm("").replace("class Mine(Norm)", "class Mine(Component)")
    (finding,) = failing(component(tmp_path, monkeypatch, text, "slotless"))
    assert (finding.check, finding.component, finding.got) == ("sound", "no slot: mine", "no `slot`")
