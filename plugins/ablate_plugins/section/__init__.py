"""Sections of the report, in modules by what they are about; what they draw and list lives in ``ablate.reporting``."""
