r"""Text of the program under test inside Markdown as GitHub reads it: shown, and never obeyed.

Three ways to put it there: :func:`words` into running text and tables, :func:`code` as code within them,
:func:`block` as lines of code. Each makes control characters visible first. Escapes are character
references, which CommonMark takes for plain text and never for markup; a backslash would be shown inside
of HTML. GitHub looks for mentions, issue numbers and addresses in running text, and not inside of code;
so what a program says stands in code, or with the sign set apart in an element of its own.
"""

from __future__ import annotations

import re

from crashlab.report.page import printable

_MARKUP = re.compile(r"[\\`*\[\]<>+|~$^&]|:(?=\S)|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|(?<=[Ww]{3})\.")
"""What CommonMark or GitHub could take for markup, an address or an emoji; an underscore inside of a word is none."""
_SIGN = re.compile(r"@|(?<!&)#")
CHARACTERS_AT_MOST = 1_000


def words(text: str, *, at_most: int = CHARACTERS_AT_MOST) -> str:
    """``text`` within a line of Markdown, a table cell or an HTML element, on one line.

    >>> words("a|b <b> @ada *x* http://c")
    'a&#124;b &#60;b&#62; <span>@</span>ada &#42;x&#42; http&#58;//c'
    """
    return _SIGN.sub(lambda match: f"<span>{match[0]}</span>", _referenced(text, at_most))


def code(text: str, *, at_most: int = CHARACTERS_AT_MOST) -> str:
    """``text`` as code within a line or a table cell; written as HTML, since a backtick cannot be escaped.

    >>> code("a`b|@c")
    '<code>a&#96;b&#124;@c</code>'
    """
    return f"<code>{_referenced(text, at_most)}</code>" if text else ""


def block(text: str, language: str = "text", *, at_most: int | None = None) -> str:
    """Lines of code behind a fence that is longer than any row of backticks in them; cut after ``at_most`` characters.

    >>> print(block("a ``` b"))
    ````text
    a ``` b
    ````
    """
    left = 0 if at_most is None else len(text) - at_most
    told = f"{text[:at_most]}\n... {left:,} characters cut" if left > 0 else text
    lines = "\n".join(printable(line) for line in told.rstrip("\n").split("\n"))
    longest = max((len(run) for run in re.findall(r"`+", lines)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{lines}\n{fence}"


def _referenced(text: str, at_most: int) -> str:
    left = len(text) - at_most
    shown = printable(text[:at_most]) + (f" … ({left:,} characters cut)" if left > 0 else "")
    return _MARKUP.sub(lambda match: f"&#{ord(match[0])};", shown)
