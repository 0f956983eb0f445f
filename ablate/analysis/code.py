"""Which trials were made with other code than the components have now; they are kept, and said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ablate.records.layout import StudyFolder, read_json


def other_code(plan: Mapping[str, Any], folder: Path) -> Iterator[str]:
    """A sentence for each component whose code has changed since some of the plan's trials were sealed.

    Code is told apart by the hash of the file that the component is in, as the plan and each record have it.
    """
    study = StudyFolder(folder)
    changed: Counter[tuple[str, str, str]] = Counter()
    arms = {arm["id"]: _sources(arm.get("components", ())) for arm in plan["arms"]}
    for trial in plan["trials"]:
        path = study.trial(trial["id"]).result
        if not path.exists():
            continue
        now = arms[trial["arm"]]
        for key, source in _sources(read_json(path)["components"]).items():
            if key in now and now[key] != source:
                changed[key] += 1
    for (slot, kind, origin), count in changed.items():
        trials = "1 trial was" if count == 1 else f"{count} trials were"
        yield (
            f"{trials} made with other code of the {slot} {kind} ({origin}) than it has now, and kept; "
            "raising the component's version runs them anew."
        )


def _sources(components: Any) -> dict[tuple[str, str, str], str]:
    return {(each["slot"], each["kind"], each["origin"]): each["source"] for each in components}
