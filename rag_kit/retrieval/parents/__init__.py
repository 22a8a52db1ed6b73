"""Retrievers that search small parts and return what stands around them."""
