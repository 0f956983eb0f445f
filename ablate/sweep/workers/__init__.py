"""The local pool: worker processes on this machine, how many, and how they start, report and end."""
