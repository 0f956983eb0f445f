"""A trained arm as a folder, and the module from it again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import ablate
from ablate.data.trained_tokenizer import TrainedTokenizer, load_tokenizer
from ablate.errors import Diagnostic, InputError
from ablate.records.layout import TrialFolder, read_json
from ablate.records.sealing import seal, write_json
from ablate.registry import Registry
from ablate.training.exporting import export
from ablate.training.job import Job
from ablate.training.trial import EVALUATION_FACTOR, train
from tests.ablate.training.test_resume import STATEFUL
from tests.trial_maker import make_trial

PYTHON = "import ablate, sys, torch\nprint(ablate.load_model(sys.argv[1])(torch.tensor([[1, 2]])).sum().item())"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> TrialFolder:
    folder = make_trial(tmp_path_factory.mktemp("export") / "trial", steps=12, model={"position": "rotary"})
    assert train(folder, 1, Registry.installed()) == "complete"
    return folder


def refusal(what: Any, *arguments: Any, **options: Any) -> Diagnostic:
    with pytest.raises(InputError) as raised:
        what(*arguments, **options)
    (found,) = raised.value.diagnostics
    return found


def judged(folder: TrialFolder, model: torch.nn.Module) -> dict[str, float]:
    """What the trial's task says of a network."""
    job = Job.read(folder, Registry.installed())
    totals: dict[str, Any] = {}
    with torch.no_grad():
        for batch in job.load().evaluation(EVALUATION_FACTOR * job.setup.training.batch):
            for name, value in job.setup.task.tally(model, batch).items():
                totals[name] = totals.get(name, 0.0) + value.to(torch.float64)
    return dict(job.setup.task.metrics({name: float(total) for name, total in totals.items()}))


def test_an_exported_arm_has_the_metrics_of_its_record_bit_for_bit(trained: TrialFolder, tmp_path: Path) -> None:
    export(trained, tmp_path / "out")
    metrics = read_json(trained.result)["metrics"]
    for folder in (tmp_path / "out", trained.path):
        model = ablate.load_model(folder)
        assert not model.training
        assert judged(trained, model) == metrics
    state = torch.load(tmp_path / "out/weights.pt", weights_only=True)
    assert state.keys() == model.state_dict().keys()
    config = read_json(tmp_path / "out/config.json")
    assert config["config"] == read_json(trained.config)["config"]
    assert (config["metrics"], config["interface"]["vocabulary"]) == (metrics, 103)
    command = [sys.executable, "-c", PYTHON, str(tmp_path / "out")]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert float(shown.stdout) == model(torch.tensor([[1, 2]])).sum().item()


def test_the_tokenizer_of_a_text_comes_along(trained: TrialFolder, tmp_path: Path) -> None:
    export(trained, tmp_path / "out")
    tokenizer = load_tokenizer(tmp_path / "out")
    (inputs,), _ = Job.read(trained, Registry.installed()).load().evaluation(1)[0]
    text = tokenizer.decode(inputs[0].tolist())
    assert tokenizer.encode(text) == inputs[0].tolist()
    with pytest.raises(ValueError, match=r"^the model knows no '☃': the text that it was trained on has none$"):
        tokenizer.encode("a ☃")
    assert TrainedTokenizer("byte").decode(TrainedTokenizer("byte").encode("é☃")) == "é☃"
    (tmp_path / "out/tokenizer.json").unlink()
    assert refusal(load_tokenizer, tmp_path / "out").message == f"there is no tokenizer in `{tmp_path / 'out'}`"


def test_byte_pairs_come_along_too(tmp_path: Path) -> None:
    folder = make_trial(tmp_path / "trial", steps=2, task={"tokenizer": {"kind": "bpe", "vocabulary": 300}})
    train(folder, 1, Registry.installed())
    export(folder, tmp_path / "out")
    tokenizer = load_tokenizer(tmp_path / "out")
    tokens = tokenizer.encode("the statement ☃")
    assert max(tokens) > 255
    assert tokenizer.decode(tokens) == "the statement ☃"


def test_a_plugin_is_brought_in_only_where_it_is_named(tmp_path: Path) -> None:
    plugin = tmp_path / "stateful.py"
    plugin.write_text(STATEFUL)
    registry = Registry.installed()
    registry.add_file(plugin, "./stateful.py")
    folder = make_trial(tmp_path / "trial", steps=3, model={"norm": "stateful"})
    entry = registry.entry("norm", "stateful")
    part = {"slot": "norm", "kind": "stateful", "origin": entry.origin, "version": 1, "source": entry.digest}
    write_json(folder.config, read_json(folder.config) | {"components": [part]})
    train(folder, 1, registry)
    export(folder, tmp_path / "out")
    found = refusal(ablate.load_model, tmp_path / "out")
    assert (found.code, found.message, found.help) == (
        "S415",
        "the model has a norm `stateful`, which came from ./stateful.py",
        "code is run only if you name it: load_model(..., plugins=['stateful.py'])",
    )
    model = ablate.load_model(tmp_path / "out", plugins=[plugin])
    assert judged_buffers(model) == judged_buffers(ablate.load_model(folder.path, plugins=[plugin])) != [0.0]
    other = tmp_path / "other" / "stateful.py"
    other.parent.mkdir()
    other.write_text(STATEFUL.replace('"mean"', '"middle"').replace("self.mean", "self.middle"))
    found = refusal(ablate.load_model, tmp_path / "out", plugins=[other])
    assert (found.code, found.help) == ("S416", "the code of norm `stateful` has changed since")


def judged_buffers(model: torch.nn.Module) -> list[float]:
    return [float(value.abs().sum()) for name, value in model.named_buffers() if name.endswith("mean")]


def test_what_cannot_be_exported_says_why(trained: TrialFolder, tmp_path: Path) -> None:
    found = refusal(ablate.load_model, tmp_path)
    assert (found.code, found.message) == ("S411", f"`{tmp_path}` is no exported model and no trial's folder")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    found = refusal(export, trained, tmp_path / "full")
    assert (found.code, found.message) == ("S417", f"`{tmp_path / 'full'}` is there already")

    folder = make_trial(tmp_path / "trial", steps=3)
    attempt = folder.attempt(1)
    attempt.path.mkdir()
    text = "trial trial has no trained model: it "
    assert refusal(export, folder, tmp_path / "out").message == text + "has not ended yet"
    write_json(attempt.end, {"end": "timed_out", "error": "at step 1"})
    found = refusal(export, folder, tmp_path / "out")
    assert (found.code, found.message) == ("S412", text + "has timed out")
    train(folder, 2, Registry.installed())
    checkpoint = folder.attempt(2).checkpoint
    checkpoint.write_bytes(checkpoint.read_bytes()[:999])
    found = refusal(export, folder, tmp_path / "out")
    assert (found.code, found.message.startswith(f"`{checkpoint}` cannot be read: ")) == ("S414", True)
    checkpoint.unlink()
    found = refusal(export, folder, tmp_path / "out")
    assert (found.code, found.message) == ("S413", "trial trial no longer has its last checkpoint")
    record = read_json(folder.result)
    folder.result.unlink()
    seal(folder.result, record | {"end": "diverged"})
    assert refusal(export, folder, tmp_path / "out").message == text + "has diverged"
    assert not (tmp_path / "out").exists()
