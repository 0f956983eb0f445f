"""The long forms of Y: a file that cannot be read as YAML."""

from __future__ import annotations

from collections.abc import Mapping

READING: Mapping[str, str] = {
    "Y001": """The file cannot be read.

It does not exist, is a folder, or the system refuses to open it. A path is relative to the folder that the command
is given in.

Wrong:

    ablate plan experiments

Right:

    ablate plan experiments/quickstart.yaml
""",
    "Y002": """The file is not UTF-8 text.

YAML files are read as UTF-8, with or without a byte order mark. The message names the first line that is something
else: often a file in Latin-1, or one in UTF-16 that an old Windows shell wrote.

Wrong:

    type old.yaml > new.yaml        (in Windows PowerShell 5, which writes UTF-16)

Right:

    copy old.yaml new.yaml
""",
    "Y003": """A character cannot stand in a YAML file.

Control characters are invisible, and most come in by accident. Between double quotes each can be written by its code.

Wrong:

    name: ^[[31mred        (where ^[ is the one character that Escape sends)

Right:

    name: "\\x1b[31mred"
""",
    "Y004": """The file is too large.

An experiment takes a few kB; a file of more than 1 MiB is something else, such as data or a log.

Wrong:

    ablate plan corpus.yaml

Right:

    ablate plan experiments/quickstart.yaml
""",
    "Y005": """The file has too many values.

Keys and values together may be 10,000, where an alias counts as all that it repeats: a few lines of aliases of aliases
would otherwise fill the memory.

Wrong:

    a: &a [x, x, x, x, x, x, x, x, x, x]
    b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]
    c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]
    d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]

Right:

    a: &a [x, x, x, x, x, x, x, x, x, x]
    b: [*a, *a]
""",
    "Y006": """Values are nested too deeply.

The limit is 100 levels, and an experiment needs about six. The usual cause is a bracket that was opened and not closed.

Wrong:

    levels: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[
             [[[[[[[[[[[[[[[[[[[[[[[

Right:

    levels: [pre, post]
""",
    "Y007": """The file is empty.

There is nothing in it, or comments alone.

Wrong:

    # name: quickstart

Right:

    name: quickstart
""",
    "Y008": """The file holds more than one document.

A line of three dashes begins a further document, and one file is one experiment: write the second to a file of its own.

Wrong:

    name: first
    ---
    name: second

Right:

    name: first
""",
    "Y009": """The file is not a mapping.

At its top a file has keys with values. A list, or a single text, has nowhere to say what it means.

Wrong:

    - name: quickstart
    - seeds: 6

Right:

    name: quickstart
    seeds: 6
""",
    "Y010": """The file is not valid YAML.

Reading stops at such an error, so what comes after it has not been checked. The usual causes are a text with a colon
in it that is not in quotes, a bracket or a quote that is not closed, and a line that is indented unlike its neighbours.

Wrong:

    question: Norm: before the sublayer or after it?

Right:

    question: "Norm: before the sublayer or after it?"
""",
    "Y011": """A tab indents a line.

YAML indents with spaces alone, since a tab is as wide as each editor likes. Tabs may stand between a value and a
comment, and inside of text.

Wrong:

    task:
    \tkind: text        # behind a tab

Right:

    task:
      kind: text
""",
    "Y012": """A key is given twice.

Many readers of YAML let the last one win, so that one of two settings is lost without a word. Here both lines are
named: keep one.

Wrong:

    seeds: 3
    name: quickstart
    seeds: 6

Right:

    name: quickstart
    seeds: 6
""",
    "Y013": """A key is not text.

By YAML's rules 4, true and null are a number, a truth value and nothing, as keys too. Names are text, so that one name
is not spelled in two ways (4 and 4.0): put it in quotes. Words such as on, off, yes and no are text as they are.

Wrong:

    levels: {2: {model.depth: 2}, 4: {model.depth: 4}}

Right:

    levels: {"2": {model.depth: 2}, "4": {model.depth: 4}}
""",
    "Y014": """YAML 1.2 has no merge key.

The key << was an addition to YAML 1.1. Repeat the keys, or put what several experiments share in a file that each
names with extends.

Wrong:

    shared: &shared {width: 64}
    model: {<<: *shared, depth: 2}

Right:

    extends: shared.yaml
    model: {depth: 2}
""",
    "Y015": """A tag is not allowed.

Tags such as !!python/object let a file make objects of a program, and !!str and its like say again what the value says
already: a number, true, false and null are themselves, and quotes make text.

Wrong:

    name: !!str 42

Right:

    name: "42"
""",
    "Y016": """An alias names an anchor that is not there.

An alias (*name) repeats the value that an anchor (&name) marks, and the anchor must come first. A text that merely
begins with an asterisk goes in quotes.

Wrong:

    first: *shared
    second: &shared [0, 1, 2]

Right:

    first: &shared [0, 1, 2]
    second: *shared
""",
    "Y017": """An alias stands inside of what it repeats.

Such a value would contain itself without end.

Wrong:

    levels: &all [pre, post, *all]

Right:

    levels: [pre, post]
""",
    "Y018": """A number is out of range.

Numbers are kept as 64-bit floats or as whole numbers no larger than those: from 5e-324 to about 1.8e308. A larger one
would silently become infinite, a smaller one zero.

Wrong:

    lr: 1e-999

Right:

    lr: 1e-9
""",
    "Y019": """An escape is half of a character.

JSON writes a character beyond U+FFFF as a pair of escapes, and a half of a pair is no character: it could be neither
printed nor saved.

Wrong:

    name: "smile \\ud83d"

Right:

    name: "smile \\ud83d\\ude42"
""",
}
