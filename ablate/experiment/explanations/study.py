"""The long forms of S4: a study's folder and its records."""

from __future__ import annotations

from collections.abc import Mapping

STUDY: Mapping[str, str] = {
    "S401": """There is no study here.

A study comes to be when an experiment is run, as a folder of the experiment's name in `runs`. It is looked for in the
folder that the command is given in, unless `--runs` names another.

Wrong:

    ablate report experiments/quickstart.yaml        (before it was run)

Right:

    ablate run experiments/quickstart.yaml
    ablate report experiments/quickstart.yaml
""",
    "S402": """The folder holds no study.

A study's folder has the plan that it was run by, in plan.json. The folder above holds all studies, and is none itself.

Wrong:

    ablate.results("runs")

Right:

    ablate.results("runs/quickstart")
""",
    "S403": """A record cannot be read.

Records are sealed when a trial ends and are not changed any more, so one that is damaged was written to by something
else, or came from a copy that was cut short. To guess at what it said would be to make up a result: restore the file,
or remove its trial's folder and have the trial run again. A damaged plan.json is written anew by the next run.

Wrong:

    echo >> runs/quickstart/trials/0123456789abcdef/result.json

Right:

    rm -r runs/quickstart/trials/0123456789abcdef
    ablate run experiments/quickstart.yaml
""",
    "S404": """No trial has ended yet.

A report needs at least one trial with a result, for which divergence counts. Trials that failed are missing data: see
why they did, and have them run again.

Wrong:

    ablate report experiments/quickstart.yaml        (when all trials have failed)

Right:

    ablate status experiments/quickstart.yaml
    ablate run experiments/quickstart.yaml --retry failed
""",
    "S405": """The study has no such metric.

Effects can be had of every metric that the task reports, under the name that the task gives.

Wrong:

    results.effects("perplexity")

Right:

    results.effects("val/bits_per_char")
""",
    "S406": """The database of `storage` cannot be used.

The Optuna study of an experiment is kept in a file of its folder, unless `storage` (or `--storage`) names a database:
any that Optuna can use, by a URL of SQLAlchemy's form. It is tried before the first trial starts, since names and
addresses are easily wrong; the message has what the database said. Once trials run, one that does not answer for a
while stops nothing: what it has missed is entered later. A file may hold no password, since it is copied and shown;
variables of the environment may stand for parts of the URL.

Wrong:

    ablate run experiments/quickstart.yaml --storage postgresql://localhost/nowhere

Right:

    pip install 'ablate-arch[postgresql]'
    ablate run experiments/quickstart.yaml --storage 'postgresql+psycopg://ada:${PASSWORD}@localhost/studies'
""",
    "S411": """There is no trained model here.

A model is loaded from a folder that `ablate export` wrote, or from the folder of a complete trial, which lies in its
study under `trials`. A tokenizer is in an exported folder alone, and only where the task is `text`.

Wrong:

    ablate.load_model("runs/quickstart")

Right:

    ablate.load_model("runs/quickstart/trials/0123456789abcdef")
""",
    "S412": """The trial has no trained model.

A trial is trained once it is complete. One that has diverged has no weights worth keeping, one that failed or timed out
has none of its last step, and one that has not ended will have them later.

Wrong:

    ablate export experiments/quickstart.yaml placement=post --seed 0        (when that trial has failed)

Right:

    ablate run experiments/quickstart.yaml --retry failed
    ablate export experiments/quickstart.yaml placement=post --seed 0
""",
    "S413": """The trial no longer has its last checkpoint.

A complete trial keeps the weights of its last step, unless the experiment says `keep_checkpoints: false` or
`ablate gc --checkpoints` has removed them. Its result is as good without them; its model can be had by training it
again.

Wrong:

    budget: {steps: 550, keep_checkpoints: false}

Right:

    budget: {steps: 550}
""",
    "S414": """A file of a trained model cannot be read.

It was cut short, or written to by something else. Weights that are half there are none: restore the file from a copy,
or train the model again.

Wrong:

    head -c 1000 model/weights.pt > copy/weights.pt

Right:

    cp -r model copy
""",
    "S415": """A component that the model is made of is not there.

A model is built by the code of its components, and that code is not part of what was exported: to load a folder runs
nothing that came with it. What is installed is found by itself; a plugin's file is brought in where you name it.

Wrong:

    ablate.load_model("model")

Right:

    ablate.load_model("model", plugins=["my_norm.py"])
""",
    "S416": """The weights do not fit the model that its components now build.

The code of a component has changed since the model was trained, or the plugin that was named is another one of the same
name. Weights are put into the model that they were trained in, and into no other.

Wrong:

    ablate.load_model("model", plugins=["my_norm.py"])        (after my_norm.py was given a further parameter)

Right:

    ablate.load_model("model", plugins=["as_it_was/my_norm.py"])
""",
    "S417": """The folder to export to is there already.

An export is written to a folder of its own, so that nothing is overwritten and no two models are mixed.

Wrong:

    ablate export runs/quickstart 0123 --out model
    ablate export runs/quickstart 4567 --out model

Right:

    ablate export runs/quickstart 0123 --out model
    ablate export runs/quickstart 4567 --out other
""",
}
