"""Results in the forms that other tools read: each made from the JSON of a result, by one function of one module.

What a student reads is made from the public result. What a system reads that shows a part of it to the student
holds the private twin's verdicts, and none of its texts: a finding of it tells the seed's tickets and amounts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from crashcourse.adapters import exercism, gradescope, junit, markdown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


@dataclass(frozen=True, slots=True)
class Format:
    """A further file beside a result: its name, and what makes its text from the whole and the public result."""

    file: str
    rendered: Callable[[Mapping[str, Any], Mapping[str, Any]], str]


FORMATS: dict[str, Format] = {
    "exercism": Format("exercism.json", exercism.rendered),
    "gradescope": Format("gradescope.json", gradescope.rendered),
    "junit": Format("junit.xml", junit.rendered),
    "markdown": Format("summary.md", markdown.rendered),
}
