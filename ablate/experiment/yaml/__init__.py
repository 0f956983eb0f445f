"""Reading YAML: from text to values whose places are known, or to everything that is wrong with it."""
