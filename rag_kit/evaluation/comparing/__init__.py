"""Compare pipelines over the same questions: differences with intervals and tests, complementarity, slices."""
