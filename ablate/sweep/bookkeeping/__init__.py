"""The Optuna study, an index of what the trials' folders say, kept by a thread of its own."""
