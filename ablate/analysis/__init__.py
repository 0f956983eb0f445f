"""From frames to words: effects paired by seed, their intervals, verdicts and caveats. Nothing here needs torch."""
