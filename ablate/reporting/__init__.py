"""From results to one self-contained page: figures, tables, the template and the files beside it. No torch."""

from ablate.reporting.page import Page
from ablate.reporting.privacy import redact
from ablate.reporting.writing import write

__all__ = ["Page", "redact", "write"]
