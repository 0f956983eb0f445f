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
}
