"""What is installed: the wheel exposes two names, and a stranger's wheel is found in a fresh environment."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def _wheel(source: Path, out: Path) -> Path:
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _wheel(ROOT, tmp_path_factory.mktemp("wheel"))


def test_wheel_exposes_exactly_two_packages(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name.split("/")[0] for name in archive.namelist()}
    assert {name for name in names if not name.endswith(".dist-info")} == {"ablate", "ablate_plugins"}


def test_wheel_carries_the_files_that_are_no_code(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    kept = {
        path.relative_to(base).as_posix()
        for base, package in [(ROOT, "ablate"), (ROOT / "plugins", "ablate_plugins")]
        for path in (base / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert kept <= packed


def test_editable_install_exposes_exactly_two_packages(tmp_path: Path) -> None:
    names = ["ablate", "ablate_plugins", "plugins", "tests", "experiments", "reports"]
    code = f"import importlib.util as u; print([name for name in {names} if u.find_spec(name)])"
    shown = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert shown.stdout.strip() == "['ablate', 'ablate_plugins']"


def test_third_party_wheel_is_found_in_a_fresh_environment(wheel: Path, tmp_path: Path) -> None:
    source = tmp_path / "zoo"
    shutil.copytree(ROOT / "tests/fixtures/third_party", source)
    zoo = _wheel(source, tmp_path / "out")
    home = tmp_path / "venv"
    venv.create(home, with_pip=False)
    site = next(home.glob("lib/python*/site-packages"))
    # The dependencies come from the environment that runs the tests; the two distributions from their wheels.
    dependencies = Path(next(p for p in sys.path if p.endswith("site-packages")))
    for path in (wheel, zoo):
        with zipfile.ZipFile(path) as archive:
            archive.extractall(site)
    (site / "dependencies.pth").write_text(str(dependencies) + "\n")
    code = """
import json, sys
from ablate.registry import Registry
registry = Registry.installed()
quiet = "torch" not in sys.modules and "ablate_zoo.norms" not in sys.modules
registry.all("section")
quiet_after_sections = "torch" not in sys.modules
kinds = registry.kinds("norm")
entry = registry.entry("norm", "dyt")
registry.kinds("mixer")
print(json.dumps({"quiet": quiet, "quiet_after_sections": quiet_after_sections, "kinds": kinds, "origin": entry.origin,
    "broken": [[b.origin, b.error] for b in registry.broken], "file": sys.modules["ablate"].__file__}))
"""
    shown = subprocess.run([home / "bin/python", "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True)
    found = json.loads(shown.stdout)
    assert found["file"].startswith(str(site))
    assert found["quiet"]
    assert found["quiet_after_sections"]
    assert {"dyt", "layer", "rms"} <= set(found["kinds"])
    assert found["origin"] == "ablate-zoo 1.2.3"
    assert found["broken"] == [
        ["ablate-zoo 1.2.3", "its entry point `nrom` names no slot; did you mean `norm`?"],
        [
            "ablate-zoo 1.2.3",
            "`ablate_zoo.broken` fails to import: ModuleNotFoundError: No module named 'a_module_that_nobody_has'",
        ],
    ]
