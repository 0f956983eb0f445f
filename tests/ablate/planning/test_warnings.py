"""Design warnings: each says what a reader of the results would otherwise not know, at its place in the file."""

from __future__ import annotations

from pathlib import Path

import pytest

import ablate
from ablate.errors import Diagnostic
from tests.ablate.experiment.maker import write

LEVELS = "path: model.placement, levels: [pre, post]"
SWITCH = "residual: {switch: model.residual}"


def warned(path: Path) -> list[Diagnostic]:
    return list(ablate.plan(path, runs=path.parent / "runs").warnings)


def line(warning: Diagnostic) -> str:
    assert warning.source is not None
    return warning.source


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        ("1", "1 seed: no interval can be computed"),
        ("2", "2 seeds: the exact sign-flip test cannot go below p = 0.5"),
        ("[3, 4, 5, 8, 9]", "5 seeds: the exact sign-flip test cannot go below p = 0.0625"),
        ("{range: [10, 16]}", None),
    ],
)
def test_few_seeds(tmp_path: Path, seeds: str, message: str | None) -> None:
    found = warned(write(tmp_path, ("seeds: 6", f"seeds: {seeds}")))
    assert [each.message for each in found] == ([message] if message else [])
    assert all(each.code == "W001" and line(each) == f"seeds: {seeds}" for each in found)


def test_names_that_are_one_arm(tmp_path: Path) -> None:
    path = write(tmp_path, ("depth: 2", "depth: 2\n  norm: none"), ("[pre, post]", "[pre, post, sandwich]"),
                 ("seeds: 6", "allow_noop: true\nseeds: 6"))  # fmt: skip
    found = [each for each in warned(path) if each.code == "W002"]
    made = ablate.plan(path)
    assert [each.message for each in found] == [
        f"`{alias}` and `{arm['name']}` are the same arm, which runs once"
        for arm in made.arms
        for alias in arm["aliases"]
    ]
    assert len(found) == 2


def test_what_cannot_be_built(tmp_path: Path) -> None:
    (warning,) = warned(write(tmp_path, (LEVELS, "path: model.mixer.heads, levels: [2, 3]")))
    assert (warning.code, warning.message) == (
        "W003", "`placement=3` is excluded: 3 heads do not divide a width of 16",
    )  # fmt: skip


def test_another_evaluation_set(tmp_path: Path) -> None:
    (warning,) = warned(write(tmp_path, (LEVELS, "path: task.context, levels: [16, 8]")))
    assert (warning.code, warning.message) == (
        "W011",
        "`placement=8`: judged on another evaluation set than the baseline, so an effect is partly the set's",
    )
    many = write(tmp_path, (LEVELS, "path: task.context, levels: [16, 8, 9, 10, 11, 12]"))
    (warning,) = warned(many)
    assert warning.message.startswith("`placement=8`, `placement=9`, `placement=10` and 2 more: judged on another ")


def test_a_rule_that_hides_a_divergence_on_record(tmp_path: Path) -> None:
    levels = (LEVELS, "path: training.optimizer.lr, levels: [1e-2, 1e30]")
    short = [("seeds: 6", "seeds: 2"), (f"\n  {SWITCH}", "\n  norm: {path: model.norm, levels: [layer, rms]}")]
    ended = ablate.run(write(tmp_path, levels, *short), runs=tmp_path / "runs").trials()
    ends = {name: set(part["end"]) for name, part in ended.groupby("name")}
    assert ends == {"baseline": {"complete"}, "placement=1e+30": {"diverged"}, "norm=rms": {"complete"}}
    rules = "exclude: [{placement: 1e30, why: too high}]\nobjective:"
    path = write(tmp_path, levels, *short, ("objective:", rules))
    (hidden,) = (each for each in warned(path) if each.code == "W005")
    assert str(hidden) == (
        "warning[W005]: `placement=1e+30` is excluded, and it has diverged in 2 seeds: a result that no table will "
        "show\n"
        f"  --> {path}:15:11\n"
        "15 | exclude: [{placement: 1e30, why: too high}]\n"
        "   |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "   = help: take the rule away, so that the report says that the arm diverges"
    )
    harmless = write(tmp_path, levels, *short, ("objective:", "exclude: [{norm: rms, why: slow}]\nobjective:"))
    assert not [each for each in warned(harmless) if each.code == "W005"]
    assert not [each for each in ablate.plan(path, runs=tmp_path / "others").warnings if each.code == "W005"]


def test_tokens_of_the_evaluation_that_training_does_not_know(tmp_path: Path) -> None:
    words = ["".join(chr(97 + (index * step) % 26) for step in range(3, 8)) + str(index) for index in range(60)]
    rows = "".join(f"{word}\t{word[::-1]}\n" for word in words)
    (tmp_path / "words.tsv").write_text(f"word\treversed\n{rows}")
    task = "task: {kind: pairs, path: words.tsv, source: word, target: reversed, tokens: words}"
    model = (
        "  kind: decoder\n  width: 16\n  depth: 2\n  mixer: {kind: attention, heads: 2}\n",
        "  kind: rnn_seq2seq\n  width: 16\n",
    )
    factors = (f"  placement: {{{LEVELS}}}\n  {SWITCH}\n", "  width: {path: model.width, levels: [16, 8]}\n")
    changes = [("task: {kind: text, source: python-docs, context: 16}", task), model, factors]
    found = [each for each in warned(write(tmp_path, *changes)) if each.code == "W016"]
    assert [(each.message, each.help) for each in found] == [
        (
            f"100% of the evaluated tokens of the {side} are unknown",
            "cut the text finer, as by `tokens: characters`, or give it more rows",
        )
        for side in ("source", "target")
    ]
    finer = [each.code for each in warned(write(tmp_path, *changes, ("tokens: words", "tokens: characters")))]
    assert "W016" not in finer
