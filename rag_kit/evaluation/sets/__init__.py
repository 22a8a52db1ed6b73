"""Sets of questions to evaluate with: read from files and frames, split, saved."""
