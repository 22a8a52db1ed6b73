"""Trees of summaries over the passages of an index, as RAPTOR makes them."""
