# SPDX-License-Identifier: Apache-2.0
"""Figures: the same figure gives the same bytes in every format."""

import io

import pytest

from hedgerow.base.figure import IMAGE_FORMATS, new_figure, write_figure


@pytest.mark.parametrize("kind", IMAGE_FORMATS)
def test_same_figure_same_bytes(kind):
    written = []
    for _ in range(2):
        figure = new_figure(3, 2)
        figure.add_subplot().plot([1, 2, 3])  # has clip paths, which matplotlib names at random
        buffer = io.BytesIO()
        write_figure(figure, buffer, kind, 80)
        written.append(buffer.getvalue())
    assert written[0] == written[1] != b""
