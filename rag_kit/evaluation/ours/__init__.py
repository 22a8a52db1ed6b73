"""Metrics of this kit's own, named ``ours_...``: what neither Ragas nor ir-measures has, or is wrong for Chinese."""
