"""The templates of the HTML views: how each value gets from a report into a page.

Two things stand between the program under test and the page. Every value is made printable, as for a
terminal (:func:`crashlab.report.page.printable`: control characters, escapes that turn text round and
half characters become visible), and cut where it is long. Then jinja2 escapes it. Both happen to every
expression of every template, so that no template can forget it.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from crashlab.report.page import printable
from crashlab.report.tables import LETTERS

VALUE_CHARACTERS = 2_000
"""What is longer is cut, and says by how much."""


def visible(value: Any) -> Any:
    r"""A text as it may be shown: on one line, printable, not endless. Anything else, and markup, as it is.

    >>> visible("a\x1b[31m" + "b" * 3000)[-28:]
    'bbb … (1,006 characters cut)'
    """
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    cut = len(value) - VALUE_CHARACTERS
    text = printable(value[:VALUE_CHARACTERS])
    return f"{text} … ({cut:,} characters cut)" if cut > 0 else text


@cache
def environment() -> Environment:
    """The templates beside this module. Undefined names are errors: a report must not silently lack a fact."""
    made = Environment(
        loader=PackageLoader("crashlab.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["letters"] = LETTERS
    return made


def template_module(name: str) -> Any:
    """The macros of one template, as functions that give markup."""
    return environment().get_template(name).module


@cache
def asset(name: str) -> str:
    """A style sheet or script of ours, as text."""
    return resources.files("crashlab.report").joinpath("templates", name).read_text(encoding="utf-8")


def trusted(text: str) -> Markup:
    """A text of ours as markup. Never for anything that came from a report."""
    return Markup(text)  # noqa: S704 - the callers give constants of this package


def policy(script: str, style: str) -> str:
    """The content security policy of a page: nothing is loaded, and no script or style but these two has effect."""
    ours = f"script-src '{_hash(script)}'; style-src '{_hash(style)}'"
    return f"default-src 'none'; {ours}; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
