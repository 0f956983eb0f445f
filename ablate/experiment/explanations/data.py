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
to the folder that the command is given in. All files of a folder are written as `folder/*.txt`.

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

What a trial is trained on is part of its identity. Trials of one study on two texts could not be compared, so the sweep
stops: what runs writes a checkpoint, and no trial has failed. With the old data back, the same command goes on. On the
new data every trial is a new one: give the experiment another name, or let `--extend` keep the old results on disk.
Where code of yours makes the data, it must make the same in every process: the order of a set of texts, for one, is
another in each, so sort it.

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
    "S307": """The model cannot write what the task wants to have written.

With a `decoding`, the task has the model write each sequence token by token. For that a model must have the methods
`begin` and `decode`, and the one in the message has not. Set `decoding` to null, and what is right is judged from the
likeliest token at each place; or give the model those methods, as the slot's contract says.

Wrong:

    model: {kind: my_model}        (a model without `begin`)
    task: {kind: copy, decoding: greedy}

Right:

    model: {kind: my_model}
    task: {kind: copy}
""",
    "S310": """No file matches a pattern.

In a `path`, `*` stands for any part of a name, `?` for one character, `[ab]` for one of these, and `**` for any folders
in between. A pattern that stands for no file is most likely misspelled: nothing would be read for it. Patterns are
relative to the experiment's file.

Wrong:

    task: {kind: text, path: [my_text.txt, my_texts/*.txt], context: 64}        # there is no folder my_texts

Right:

    task: {kind: text, path: [my_*.txt], context: 64}
""",
    "S311": """A file of an installed package cannot be found.

`resource` is the name of a package as it is imported, a colon, and the path of a file inside the package. The package
must be installed where Ablate runs, and must bring the file; not every package brings the texts of its repository.

Wrong:

    task: {kind: text, resource: "pydoc_data:words.txt", context: 64}

Right:

    task: {kind: text, resource: "pydoc_data:topics.py", context: 64}
""",
    "S313": """There are too few documents.

With `documents`, whole documents are kept for validation, one in ten, so that no document is in both parts. With fewer
than ten there is none to keep. Often `documents` is not what ends each one in this file, and all of it is one document.

Wrong:

    task: {kind: text, path: my_text.txt, context: 64, documents: "<|end|>"}        # it stands nowhere in it

Right:

    task: {kind: text, path: my_text.txt, context: 64}
""",
    "S314": """There is nothing to learn in the text.

The part for training is one token again and again: whatever model is asked, it is right after a few steps, and all arms
are alike. Often the file was made for a trial, or its content is not what is meant.

Wrong:

    task: {kind: text, text: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", context: 2}

Right:

    task: {kind: text, text: "abaabaabaabaabaabaabaabaabaabaab", context: 2}
""",
    "S315": """A file changed while it was in use.

A long text is not copied into memory: its file is read where it lies, again and again. Another program wrote to it in
that time, so what was trained on is neither the old text nor the new. The sweep stops, and no trial has failed. Run
the experiment again when the file is written.

Wrong:

    ablate run quickstart.yaml        (while another program writes my_text.txt)

Right:

    ablate run quickstart.yaml        (when my_text.txt is written)
""",
    "S316": """Tokens cannot be written to the cache.

The tokens of a long text are made once and kept in a folder for caches, which all workers read: that of the system for
this user, or the one that ABLATE_CACHE names. The folder must allow writing, and have room for one, two or four bytes a
token. All of it can be deleted at any time.

Wrong:

    ABLATE_CACHE=/read-only ablate run quickstart.yaml

Right:

    ABLATE_CACHE=/scratch/ablate ablate run quickstart.yaml
""",
    "S340": """There are too few expressions of nested lists.

No expression comes twice, and none of training is in the evaluation set. With few levels and arguments there are not so
many; and where all must be long, most that are begun end too early. Those that were found in a fair time are counted in
the message.

Wrong:

    task: {kind: listops, depth: 2, arguments: 2, examples: 400}        # one operation on two digits

Right:

    task: {kind: listops, depth: 4, arguments: 4, examples: 400}
""",
}
