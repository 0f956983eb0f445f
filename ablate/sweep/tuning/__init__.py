"""Tuning: each arm looks for its own best values, with the same number of trials, before it is reported."""
