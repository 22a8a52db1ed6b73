"""Search for the settings that suit a set of questions best, under a budget, and say whether the gain is real."""
