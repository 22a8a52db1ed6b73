"""Cutting documents into the parts that are searched in their place."""
