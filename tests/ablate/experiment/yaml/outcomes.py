"""What becomes of a text, for tests: its values, its errors, and the text at a place."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ablate.errors import Diagnostic, InputError, Span
from ablate.experiment.reading import Document, parse


def data(text: str) -> dict[str, Any]:
    return parse(text, "x.yaml").data


def errors(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(InputError) as caught:
        parse(text, "x.yaml")
    return caught.value.diagnostics


def typed(value: object) -> str:
    """A value as text that tells 1 from 1.0 and true, and is the same for two NaN."""
    return f"{type(value).__name__} {value!r}"


def text_at(document: Document, span: Span) -> str:
    return re.split("\r\n|\r|\n", document.text)[span.line - 1][span.column - 1 : span.end - 1]
