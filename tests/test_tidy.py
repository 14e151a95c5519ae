"""House rules that a linter does not know: layering, sizes, banned calls, reasons, layout, clean texts.

A rule looks at one file and yields complaints. Each rule has a planted file that breaks it and a planted
file that does not; a rule that has gone blind, or that sees ghosts, fails its own test here.
"""

from __future__ import annotations

import ast
import fnmatch
import io
import os
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOP_LEVEL = {".ci", ".gitignore", "LICENSE", "Makefile", "README.md", "constraints.txt", "pyproject.toml"} | {
    "exercises",
    "lab",
    "lessons",
    "notebooks",
    "tests",
}
FUNCTION_LINES, MODULE_LINES, LONGEST_LINES = 40, 450, 70
LONG_FUNCTIONS: dict[str, int] = {"tests/crashlab/recover/test_worker.py:misbehave": 50}
"""``path:function`` to its own limit, at most LONGEST_LINES: for tables that are no clearer in pieces."""

MAY_PRINT = re.compile(r"lab/crashlab/(cli|commands|exits|report)(/|\.py$|_)")
IS_STARTER = re.compile(r"exercises/[\w-]+/starter/")
DEMO_BY_NAME = re.compile(r"lab/crashlab/(cli|commands)(/|\.py$|_)")
DESCRIBES_SUBJECTS = re.compile(r"lab/longrun/(.*/)?subjects\.py$")


@dataclass(frozen=True)
class Source:
    """One file of the repository. ``path`` is relative to its root, with ``/``."""

    path: str
    text: str

    @property
    def is_python(self) -> bool:
        """Whether the rules about code apply."""
        return self.path.endswith(".py")

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree; empty for other files than Python's."""
        return ast.parse(self.text) if self.is_python else ast.Module([], [])

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All of the tree, which most rules look at."""
        return list(ast.walk(self.tree))

    @cached_property
    def comments(self) -> list[tuple[int, str]]:
        """Line and text of every comment; strings that look like one do not count."""
        if not self.is_python:
            return []
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]

    def complaint(self, line: int, text: str) -> str:
        """One line of complaint, in the form that editors jump to."""
        return f"{self.path}:{line}: {text}"


Rule = Callable[[Source], Iterator[str]]


def layering(source: Source) -> Iterator[str]:
    """crashlab knows nothing of the other two; longrun knows crashlab only where it describes subjects."""
    if source.path.startswith("lab/crashlab/"):
        strangers = {"longrun", "crashcourse", "benchmarks"}
    elif source.path.startswith("lab/longrun/"):
        strangers = {"crashcourse", "benchmarks"}
        if not DESCRIBES_SUBJECTS.match(source.path):
            strangers.add("crashlab")
    else:
        return
    for line, module in imports(source.nodes):
        if module.split(".")[0] in strangers:
            yield source.complaint(line, f"imports {module}; this layer must not know it")
    if DEMO_BY_NAME.match(source.path):
        return
    for node in source.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            dotted = re.fullmatch(r"(\w+)([.:][\w.:]*)?", node.value)
            if dotted and dotted[1] in strangers - {"benchmarks", "crashlab"}:
                yield source.complaint(node.lineno, f"names {node.value!r}; this layer must not know it")


def imports(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Line and module of every import, wherever it stands."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.lineno, node.module


def function_length(source: Source) -> Iterator[str]:
    """No function is longer than 40 lines, docstring included."""
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            limit = LONG_FUNCTIONS.get(f"{source.path}:{node.name}", FUNCTION_LINES)
            if lines > min(limit, LONGEST_LINES):
                yield source.complaint(node.lineno, f"{node.name} has {lines} lines, the limit is {limit}")


def module_length(source: Source) -> Iterator[str]:
    """No module is longer than 450 lines."""
    lines = source.text.count("\n")
    if source.is_python and lines > MODULE_LINES:
        yield source.complaint(1, f"{lines} lines, the limit is {MODULE_LINES}; is this still one idea?")


def module_docstring(source: Source) -> Iterator[str]:
    """Every module says what it is for."""
    if source.is_python and not ast.get_docstring(source.tree):
        yield source.complaint(1, "no docstring: say what the module models, and what not")


def docstring_of_tests(source: Source) -> Iterator[str]:
    """Every test says in its docstring which behaviour it shows."""
    if Path(source.path).name.startswith("test_"):
        for node in source.nodes:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and not ast.get_docstring(node):
                yield source.complaint(node.lineno, f"{node.name} has no docstring: which behaviour does it show?")


def bare_except(source: Source) -> Iterator[str]:
    """A handler names what it handles."""
    for node in source.nodes:
        if isinstance(node, ast.ExceptHandler) and node.type is None:
            yield source.complaint(node.lineno, "bare except: name the errors")


def sleep(source: Source) -> Iterator[str]:
    """Nothing in lab/ sleeps in order to wait: wait for the thing itself."""
    if source.path.startswith("lab/"):
        for line, name in calls(source.nodes):
            if name in {"time.sleep", "sleep", "asyncio.sleep"}:
                yield source.complaint(line, f"{name}: wait for the thing itself, not for a while")


def printing(source: Source) -> Iterator[str]:
    """In crashlab only the command and the report views print."""
    if source.path.startswith("lab/crashlab/") and not MAY_PRINT.match(source.path):
        for line, name in calls(source.nodes):
            if name == "print":
                yield source.complaint(line, "print: return data; cli and report print it")


def calls(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Line and dotted name of every call of a plain name."""
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            yield node.lineno, ast.unparse(node.func)


def unfinished(source: Source) -> Iterator[str]:
    """No notes to oneself, no stubs. What a starter leaves to do is the exercise itself."""
    if IS_STARTER.match(source.path):
        return
    for number, line in enumerate(source.text.splitlines(), 1):
        if re.search(r"\b(TOD[O]|FIXM[E]|XX[X])\b", line):
            yield source.complaint(number, "a note to oneself: do it, or file it")
    for node in source.nodes:
        if isinstance(node, ast.Raise) and node.exc and "NotImplementedError" in ast.unparse(node.exc):
            yield source.complaint(node.lineno, "a stub: leave it away until it works")


def reasons(source: Source) -> Iterator[str]:
    """Each noqa, type: ignore and pragma says of what, and why."""
    for line, comment in source.comments:
        for silencer in re.finditer(
            r"#\s*(noqa|type:\s*ignore|pragma:\s*no\s*\w+)(.*?)(?=#\s*(?:noqa|type:)|$)", comment
        ):
            name, rest = silencer[1], silencer[2]
            codes = r"\s*" if name.startswith("pragma") else r"(:\s*[A-Z]+\d+(,\s*[A-Z]+\d+)*|\[[a-z\-, ]+\])\s*"
            said = re.match(codes, rest)
            if not said:
                yield source.complaint(line, f"{name} without a code: say of what")
            elif len(re.findall(r"[A-Za-z]{2,}", rest[said.end() :] + reason_behind(comment, silencer.end()))) < 2:
                yield source.complaint(line, f"{name} without a reason: say why, behind it")


def reason_behind(comment: str, position: int) -> str:
    """The words of the next silencer on the same line: one reason may serve two of them."""
    behind = re.match(r"#\s*(?:noqa|type:\s*ignore)\S*\s*(?:[A-Z]+\d+,?\s*)*(.*)", comment[position:])
    return behind[1] if behind else ""


def clean_text(source: Source) -> Iterator[str]:
    """No path of one machine, no host of a package registry, no secret."""
    machine = r"(?<![\w}])/(wor[k]|roo[t]|User[s])/"
    registry = r"index-ur[l]|pythonhoste[d]|pypi\.or[g]/simple|registry\.npmj[s]|deb\.debia[n]"
    unclean = re.compile(f"{machine}|{registry}|sk-an[t]-")
    for number, line in enumerate(source.text.splitlines(), 1):
        if found := unclean.search(line):
            yield source.complaint(number, f"{found[0]!r} belongs to one machine")


def layout(source: Source) -> Iterator[str]:
    """The top level holds what it is meant to hold."""
    top = source.path.split("/")[0]
    if top not in TOP_LEVEL:
        yield source.complaint(1, f"{top} is not part of the layout: {', '.join(sorted(TOP_LEVEL))}")


RULES: tuple[Rule, ...] = (
    layering,
    function_length,
    module_length,
    module_docstring,
    docstring_of_tests,
    bare_except,
    sleep,
    printing,
    unfinished,
    reasons,
    clean_text,
    layout,
)

PLANTED: dict[str, list[tuple[str, str]]] = {  # rule: files that break it, as (path, text)
    "layering": [
        ("lab/crashlab/pipeline.py", "from longrun import loop\n"),
        ("lab/crashlab/pipeline.py", "def f():\n    import crashcourse.grade\n"),
        ("lab/crashlab/pipeline.py", "load('longrun.effects.subjects:naive')\n"),
        ("lab/longrun/loop.py", "from crashlab import Store\n"),
        ("lab/longrun/subjects.py", "import crashcourse\n"),
    ],
    "function_length": [("lab/longrun/a.py", "def f():\n" + "    f()\n" * FUNCTION_LINES)],
    "module_length": [("tests/a.py", "f()\n" * (MODULE_LINES + 1))],
    "module_docstring": [("tests/a.py", "f()\n"), ("lab/longrun/__init__.py", "")],
    "docstring_of_tests": [("tests/crashlab/test_a.py", "class TestA:\n    def test_it(self):\n        f()\n")],
    "bare_except": [("tests/a.py", "try:\n    f()\nexcept:\n    g()\n")],
    "sleep": [("lab/longrun/a.py", "import time\ntime.sleep(1)\n")],
    "printing": [("lab/crashlab/judge.py", "print(1)\n")],
    "unfinished": [
        ("README.md", "TO" + "DO: write this\n"),
        ("lab/crashlab/a.py", "def f():\n    raise NotImplementedError\n"),
    ],
    "reasons": [
        ("tests/a.py", "f()  # noqa\n"),
        ("tests/a.py", "f()  # noqa: " + "S101\n"),
        ("tests/a.py", "f()  # type: ignore[arg-type]\n"),
        ("tests/a.py", "f()  # type: ignore  # it is wrong on purpose\n"),
        ("tests/a.py", "f()  # pragma: no cover\n"),
    ],
    "clean_text": [("Makefile", "include /" + "root/settings\n"), ("pyproject.toml", "index-" + "url = 'x'\n")],
    "layout": [("notes/plan.md", "what I mean to do\n")],
}

HARMLESS: list[tuple[str, str]] = [  # files that break nothing, close to the line
    ("lab/crashlab/cli.py", '"""Doc."""\nload("longrun.subjects:naive")\nprint(1)\n'),
    ("lab/crashlab/judge.py", '"""Agents of longrun and others."""\nfrom crashlab import trace\n'),
    ("lab/longrun/effects/subjects.py", '"""Doc."""\nfrom crashlab import Store\n'),
    ("lab/longrun/loop.py", '"""Doc."""\nsubject = "crashlab"\n'),
    ("tests/a.py", '"""Doc."""\n\n\ndef f():\n' + "    f()\n" * (FUNCTION_LINES - 1) + "time.sleep(0)\nprint(2)\n"),
    (
        "tests/b.py",
        '"""Doc."""\nf()  # noqa: S101' + " - tested here\ng()  # type: ignore[arg-type]  # wrong on purpose\n",
    ),
    (
        "tests/c.py",
        '"""Doc."""\ntry:\n    f("/home/ada", "root/dir")\nexcept OSError:\n    g()  # pragma: no cover - never here\n',
    ),
]


def complaints(rules: tuple[Rule, ...], sources: list[Source]) -> list[str]:
    """Everything that these rules say about these files."""
    return [text for source in sources for rule in rules for text in rule(source)]


def blind(rules: tuple[Rule, ...]) -> list[str]:
    """Names of the rules that miss a file that was planted for them."""
    by_name = {rule.__name__: rule for rule in rules}
    return [name for name, files in PLANTED.items() if not all(list(by_name[name](Source(*file))) for file in files)]


@cache
def repository() -> list[Source]:
    """Every text file that git would take, by the plain names in .gitignore."""
    ignored = [line.rstrip("/") for line in (ROOT / ".gitignore").read_text().splitlines() if line and line[0] != "#"]
    sources = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name != ".git" and not any(fnmatch.fnmatch(name, i) for i in ignored)]
        for name in files:
            path = Path(folder, name)
            if not any(fnmatch.fnmatch(name, pattern) for pattern in ignored):
                sources.append(Source(path.relative_to(ROOT).as_posix(), path.read_text(errors="replace")))
    return sources


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_repository_keeps_the_rule(rule: Rule) -> None:
    """No file of the repository breaks a rule."""
    found = complaints((rule,), repository())
    assert not found, "\n".join(["", *found])


def test_the_walk_sees_the_repository() -> None:
    """The files that the rules are held against include this one, the tool and the build files."""
    paths = {source.path for source in repository()}
    assert {"tests/test_tidy.py", "lab/crashlab/trace.py", "Makefile", ".ci/run"} <= paths


def test_every_rule_sees_what_was_planted() -> None:
    """Each rule has planted files, and complains about every one of them."""
    assert set(PLANTED) == {rule.__name__ for rule in RULES}
    assert blind(RULES) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_rule_gone_blind_is_noticed(rule: Rule) -> None:
    """Sabotage: with one rule replaced by one that sees nothing, exactly that one is named."""

    def sees_nothing(_: Source) -> Iterator[str]:
        return iter(())

    sees_nothing.__name__ = rule.__name__
    assert blind(tuple(sees_nothing if each is rule else each for each in RULES)) == [rule.__name__]


@pytest.mark.parametrize("file", HARMLESS, ids=lambda file: file[0])
def test_no_rule_sees_ghosts(file: tuple[str, str]) -> None:
    """Files that keep the rules by a hair get no complaint."""
    assert not complaints(RULES, [Source(*file)])


def test_long_functions_stay_few_and_bounded() -> None:
    """The list of exceptions is short, each is at most 70 lines, and none is out of date."""
    assert len(LONG_FUNCTIONS) <= 3
    assert all(FUNCTION_LINES < limit <= LONGEST_LINES for limit in LONG_FUNCTIONS.values())
    present = {
        f"{source.path}:{node.name}"
        for source in repository()
        for node in source.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert set(LONG_FUNCTIONS) <= present
