"""The four abilities that RGB measures (Chen et al., 2023, https://arxiv.org/abs/2309.01431)."""
