"""What is cut from logs and texts."""

from __future__ import annotations

import getpass
import socket

import pytest

from ablate.reporting import privacy
from ablate.reporting.privacy import redact, tail


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ('File "/home/ada/thesis/ablate/training/module.py", line 3', 'File "ablate/training/module.py", line 3'),
        (
            "at /opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py:125",
            "at site-packages/torch/nn/modules/linear.py:125",
        ),
        ("read /home/ada/data/corpus.txt", "read …/corpus.txt"),
        ("in /home/ada", "in …"),
        ("in /home/ada/", "in …"),
        ("cd ~ada && ls", "cd ~ && ls"),
        ("on /scratch/ada", "on …"),
        ("log:/home/ada/run/x.log", "log:…/x.log"),
        ("path=/mnt/share/ada/set", "path=…/set"),
        ('File "/Users/Ada Love/My Code/train.py", line 1', 'File "…/train.py", line 1'),
        (r"File C:\Users\ada\code\train.py, line 1", "File …/train.py, line 1"),
        ("C:/Users/ada/code/ablate/api.py", "ablate/api.py"),
        (r"\\fileserver\ada\set.txt", "…/set.txt"),
        ("file:///home/ada/x/report.html", "…/report.html"),
        ("runs/quick/trials/0123/a001/log.txt", "runs/quick/trials/0123/a001/log.txt"),
        ("/home/ada/w/runs/quick/trials/0123/a001/log.txt", "trials/0123/a001/log.txt"),
        ("/home/ada/x.py was written by ada on host", "…/x.py was written by … on host"),
        ("mail ada@example.org", "mail …"),
        ("ssh ada@node7:22", "ssh …:22"),
        ("tcp://10.1.2.33:29500", "tcp://…:29500"),
        ("listening on 127.0.0.1:80", "listening on 127.0.0.1:80"),
    ],
)
def test_private_parts_are_cut(text: str, cut: str) -> None:
    assert redact(text) == cut


@pytest.mark.parametrize(
    "text",
    [
        "val/loss and/or a/b",
        "RuntimeError: shapes (64, 3) and (4, 64) differ in q@k",
        "ratio 1/2, 3 / 4 / 5, 1/sqrt(d)/2",
        "https://example.org/a/b/c.html",
        "<b>/</b> </script> // comment /* text */",
        "torch 2.13.0, step 1e-3, loss 1.68",
        "root cause: the user's main test",
        "",
    ],
)
def test_other_texts_stay(text: str) -> None:
    assert redact(text) == text


def test_this_machines_names_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "tigerlily.lab.example")
    monkeypatch.setattr(getpass, "getuser", lambda: "adalove")
    privacy._own_names.cache_clear()
    try:
        assert redact("rank 0 on tigerlily.lab.example, tigerlily: adalove, adalovelace") == (
            "rank 0 on …, …: …, adalovelace"
        )
    finally:
        privacy._own_names.cache_clear()


def test_a_tail_says_what_it_cut() -> None:
    log = "\n".join(f"line {number}" for number in range(100)) + "\n" + "x" * 1000 + "\n"
    lines = tail(log, lines=3, width=20).split("\n")
    assert lines == ["… (98 lines before)", "line 98", "line 99", "x" * 20 + " … (980 more characters)"]
    assert tail("short\n") == "short"
    assert tail("") == ""


def test_redacting_twice_changes_nothing() -> None:
    once = redact('File "/home/ada/thesis/ablate/x.py" on /scratch/ada, mail ada@example.org, C:\\Users\\ada\\y.txt')
    assert redact(once) == once
