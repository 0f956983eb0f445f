"""The report's figures, a module a subject; each function draws one and needs a study, no page."""
