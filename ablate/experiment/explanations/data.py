"""The long forms of S3: the data that a task brings."""

from __future__ import annotations

from collections.abc import Mapping

DATA: Mapping[str, str] = {
    "S301": """The text is empty.

There is nothing in it to train on. Often the program that should have written the file ended early.

Wrong:

    printf '' > my_text.txt

Right:

    cat chapters/*.txt > my_text.txt
""",
    "S302": """The text is too short for its context.

A tenth of the text is kept for validation, and both parts must hold at least one window of `context` characters: the
text needs ten times the context and ten more.

Wrong:

    task: {kind: text, path: my_text.txt, context: 4096}        # a text of 2,000 characters

Right:

    task: {kind: text, path: my_text.txt, context: 64}
""",
    "S303": """The text cannot be read.

The file does not exist, is a folder, or the system refuses to open it. `path` is relative to the experiment's file, not
to the folder that the command is given in.

Wrong:

    task: {kind: text, path: text.txt, context: 64}

Right:

    task: {kind: text, path: my_text.txt, context: 64}
""",
    "S304": """The text is not UTF-8.

A model is trained on characters, and some bytes of the file stand for none. The message names the first such line.
Often the file is in Latin-1, or is no text.

Wrong:

    path: latin1.txt

Right:

    path: utf8.txt        (made by: iconv -f latin1 -t utf-8 latin1.txt > utf8.txt)
""",
    "S305": """The data have changed since the plan was made.

What a trial is trained on is part of its identity. Trials of one study on two texts could not be compared, so the trial
stops. Plan and run the experiment again: on the new data every trial is a new one.

Wrong:

    ablate run quickstart.yaml        (while another program writes my_text.txt)

Right:

    ablate run quickstart.yaml        (when my_text.txt is written)
""",
    "S306": """The task gives other metrics than it names.

A task names its metrics with their units, and the report is made for those. At the end of a trial its task gives the
values: one that is missing could not be told from one that diverged, and one that is not named would be lost. The trial
fails; name exactly what `metrics` returns.

Wrong:

    units = {"val/loss": "nats", "val/accuracy": "share"}
    def metrics(self, loss): return {"val/loss": loss}

Right:

    units = {"val/loss": "nats"}
    def metrics(self, loss): return {"val/loss": loss}
""",
}
