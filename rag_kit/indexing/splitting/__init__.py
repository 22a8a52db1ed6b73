"""Cutting documents into chunks: by structure first, then between sentences."""
