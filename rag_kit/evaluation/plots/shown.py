"""A figure that shows itself in Jupyter, without pyplot and without a magic command."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class ShownFigure(Figure):
    """As the last expression of a cell it is an image; matplotlib's own would be a line of text.

    Example:
        >>> ShownFigure(figsize=(1, 1))._repr_png_()[1:4]
        b'PNG'
    """

    def _repr_png_(self) -> bytes:
        target = io.BytesIO()
        self.savefig(target, format="png", dpi=120)
        return target.getvalue()
