"""Filters from questions by rule: values, numbers and dates that a question names, in English and Chinese."""
