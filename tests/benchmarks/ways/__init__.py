"""Ways to train the same trials, each with the seconds that it takes and the numbers that it comes to."""
