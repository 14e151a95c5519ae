"""Pictures of crashes: time lines, matrices, trees and ladders, each an SVG text with a twin in plain ASCII.

Every function takes plain data, or a report or finding of crashlab, and returns a :class:`Picture`, which shows itself
in a notebook. The same data give the same bytes: no clock, no process number, no random id, no path of a machine
may come in, and what must not be drawn is the caller's to leave out. Names that a subject chose are escaped.
"""

from __future__ import annotations

from crashcourse.pictures.bars import bars
from crashcourse.pictures.ladder import Rung, ladder
from crashcourse.pictures.matrix import Cell, matrix, matrix_of
from crashcourse.pictures.points import Point, point_tree
from crashcourse.pictures.svg import Picture
from crashcourse.pictures.timeline import Mark, timeline, timeline_of
from crashcourse.pictures.tree import tree, tree_of

__all__ = [
    "Cell",
    "Mark",
    "Picture",
    "Point",
    "Rung",
    "bars",
    "ladder",
    "matrix",
    "matrix_of",
    "point_tree",
    "timeline",
    "timeline_of",
    "tree",
    "tree_of",
]
