"""The long forms of S35 and S36: the user's own data, from the hub, from Python code and from a DataModule."""

from __future__ import annotations

from collections.abc import Mapping

SOURCES: Mapping[str, str] = {
    "S350": """What a table comes from is not written as it should be.

A `path` that begins with `hub:` names a dataset, by its owner and its name, then a slash and a configuration if there
are several, then a colon and a split. One that begins with `python:` names a module, a colon and an object in it.

Wrong:

    task: {kind: labelled_text, path: "python:my_data"}

Right:

    task: {kind: labelled_text, path: "python:my_data:rows"}
""",
    "S351": """A module of the user's code cannot be imported.

It is a file beside the experiment, `my_data.py` for `my_data`, or an installed package. Either there is none of that
name, or it raises while it is imported; the message has what it raised.

Wrong:

    path: "python:my_dta:rows"        (beside a file my_data.py)

Right:

    path: "python:my_data:rows"
""",
    "S352": """A module has no such name.

The object is looked for among the names that the module has when it is imported.

Wrong:

    path: "python:my_data:row"        (my_data.py: rows = [...])

Right:

    path: "python:my_data:rows"
""",
    "S353": """A Python object is no table.

A table has `__len__`, the number of its rows, and `__getitem__`, which gives the row of a number from 0 as a dict. A
list of dicts is one, and so is a PyTorch dataset that gives dicts; a dict of columns is none. A class, or a function,
that gives such an object without arguments may be named too.

Wrong:

    rows = {"text": ["it rains"], "label": ["weather"]}

Right:

    rows = [{"text": "it rains", "label": "weather"}]
""",
    "S354": """The user's code raises an error.

An experiment named this code, and it was run before any trial. The message says which object, and which row or batch of
it, or which method. A DataModule is called without a trainer: `self.trainer` is None.

Wrong:

    def __getitem__(self, row): return {"text": self.texts[row + 1], "label": self.labels[row]}

Right:

    def __getitem__(self, row): return {"text": self.texts[row], "label": self.labels[row]}
""",
    "S355": """A row is no dict.

Each row of a Python object has its cells by the names of the columns, of which it may have more than are wanted.

Wrong:

    rows = [("it rains", "weather")]

Right:

    rows = [{"text": "it rains", "label": "weather"}]
""",
    "S356": """The hub of datasets cannot be reached.

A dataset that `hub:` names is fetched from the Hugging Face hub, and kept by the package `datasets` on this machine.
There is no network here, or HF_HUB_OFFLINE is set, and the dataset was not fetched before. Fetch it once where there is
a network, as on the cluster's login node, or copy its files.

Wrong:

    path: "hub:stanfordnlp/imdb:train"        (on a node without a network)

Right:

    path: "hub:./imdb:train"        (a folder of parquet files, or one that save_to_disk wrote)
""",
    "S357": """A dataset cannot be loaded.

The package `datasets` has refused it: there is no dataset, configuration, split or file of that name, it may be read by
none but its owners, or a file of it is broken. The message has the words of that package. It loads data and no code, so
a dataset that is a script is refused too.

Wrong:

    path: "hub:stanfordnlp/imdb:training"

Right:

    path: "hub:stanfordnlp/imdb:train"
""",
    "S358": """The user's code gives something else each time it is read.

Each trial reads it anew in a process of its own, and trials on different data could not be compared. What was never
read before is therefore read twice. The global generators of Python, NumPy and torch are at 0 at each reading; one of
your own needs a fixed seed. The time and what `uuid` gives have no place in the data, and the order of a set of texts,
which is another in each process, is sorted.

Wrong:

    rows = [{"text": text, "label": random.SystemRandom().choice("ab")} for text in texts]

Right:

    rows = [{"text": text, "label": random.choice("ab")} for text in texts]
""",
    "S360": """Code for `lightning` meets `pytorch_lightning`.

Lightning is published as two packages with the same classes. A DataModule of the one is no DataModule for the other,
and hooks of the one are not called by the other. Ablate runs on `pytorch_lightning`.

Wrong:

    import lightning.pytorch as pl

Right:

    import pytorch_lightning as pl
""",
    "S361": """The object is no DataModule, or not one that can be read.

The task `datamodule` takes a DataModule of `pytorch_lightning`, its class, or a function that gives one; `options` are
given to a class or function, and not to what is made already. Each of its two loaders is one loader, not a list.

Wrong:

    task: {kind: datamodule, of: "my_data:MyDataset"}        # a torch.utils.data.Dataset

Right:

    task: {kind: datamodule, of: "my_data:MyData"}
""",
    "S362": """A loader has no samples.

Training and validation each need some. With `drop_last=True` a loader whose data are fewer than a batch gives none.

Wrong:

    def val_dataloader(self): return DataLoader(self.few, batch_size=512, drop_last=True)

Right:

    def val_dataloader(self): return DataLoader(self.few, batch_size=512)
""",
    "S363": """A batch does not have what its form wants.

For `language_modelling` a batch has `tokens` and `targets`, for `classification` `tokens`, `valid` and `labels`, for
`sequence_to_sequence` `source`, `valid`, `tokens` and `targets`: a dict of these, or a tuple in this order. `valid` may
be left out; a dict may have more.

Wrong:

    return {"input_ids": ids[:-1], "labels": ids[1:]}

Right:

    return {"tokens": ids[:-1], "targets": ids[1:]}
""",
    "S364": """A tensor of a batch has the wrong type or shape.

`tokens`, `source` and `targets` are whole numbers (B, T), and `labels` are whole numbers (B,). In a classification
`tokens` may also be values (B, T, F): a picture is cut into patches first. Targets have the shape of the tokens,
`valid` that of what is read, and all batches are of one kind.

Wrong:

    return {"tokens": picture, "labels": label}        # (28, 28) a sample, and all of them numbers of a vocabulary

Right:

    return {"tokens": picture.float() / 255, "labels": label}        # 28 tokens of 28 values
""",
    "S365": """A sample has a value that cannot be.

Numbers of tokens and labels begin at 0, values are finite, and `valid` is true from the first place to the end of a
sequence and false behind it. A target of -100 is ignored, and one at least is not. The message counts samples from 1,
in the order of the loader; where it shuffles, that order is the one of generators at 0.

Wrong:

    targets = [-1, 7, 8]

Right:

    targets = [-100, 7, 8]
""",
    "S366": """A sample is longer than its context.

A `context` that is set has room for so many tokens. Without one the longest sample of the data decides.

Wrong:

    task: {kind: datamodule, of: "my_data:MyData", context: 64}        # a sample of 80 tokens

Right:

    task: {kind: datamodule, of: "my_data:MyData", context: 80}
""",
    "S367": """A number in a sample is beyond the vocabulary or the labels.

With a `vocabulary` or `classes` of so many, numbers go from 0 to one less. Without it the largest number in the data
decides.

Wrong:

    task: {kind: datamodule, of: "my_data:MyData", vocabulary: 256}        # and a token 256 for the end

Right:

    task: {kind: datamodule, of: "my_data:MyData", vocabulary: 257}
""",
}
