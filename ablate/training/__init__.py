"""Training one trial with Lightning: keyed, resumable at any step, and recorded."""
