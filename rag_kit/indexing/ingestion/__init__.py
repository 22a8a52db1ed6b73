"""Files into an index: what changed is read, split, embedded and written; the rest is left alone."""
