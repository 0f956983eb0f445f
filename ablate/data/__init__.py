"""What tasks share: tables of text, sequences of different lengths, splits, and what is counted of a model."""
