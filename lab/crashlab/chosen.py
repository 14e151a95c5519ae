"""What ``crashlab check`` is to check: subjects by their import path, and those that ``crashlab.toml`` names.

A declared subject is checked in the folder of its file: its commands run there, its object is imported from
there, and its own arguments stand between the environment and the defaults.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from crashlab import context
from crashlab.errors import UsageError
from crashlab.project import Declared, Project, read
from crashlab.recover import travel

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from crashlab.subject import AnySubject


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """One subject to check. ``declared`` where ``project`` names it."""

    subject: AnySubject | str
    project: Project | None = None
    declared: Declared | None = None

    @property
    def name(self) -> str:
        """What it is called while it is checked."""
        if self.declared is not None:
            return self.declared.name
        return self.subject if isinstance(self.subject, str) else self.subject.name

    @contextlib.contextmanager
    def here(self, out: Path | None) -> Iterator[tuple[AnySubject | str, Path | None]]:
        """The subject, and the folder for its runs, where it is to be checked: a declared one in its project's folder.

        ``out`` is what the command line says. Raises UsageError where the object cannot be imported.
        """
        around = dataclasses.replace(context.current, project=None if self.project is None else self.project.file)
        if self.project is None or self.declared is None:
            with context.surrounded(around):
                yield self.subject, out
            return
        options = {**self.project.defaults, **self.declared.options}
        kept = context.merged({"out": out}, options).get("out")
        place = Path(kept) if kept else None
        if place is not None and Path.cwd() != self.project.folder:
            place = place.absolute()
        around = dataclasses.replace(around, subject=self.declared.name, declared=self.declared.options)
        folder = str(self.project.folder)
        with contextlib.chdir(folder), context.surrounded(around):
            if folder not in sys.path:
                sys.path.insert(0, folder)
            yield _subject_of(self.declared), place


def _subject_of(declared: Declared) -> AnySubject | str:
    """The subject. An object is imported here only where the file replaces some of its fields."""
    if declared.commands is not None:
        return declared.commands
    if not declared.fields:
        return declared.path
    subject = travel.imported(declared.path)
    known = {each.name for each in dataclasses.fields(subject)}
    for name in declared.fields:
        if name not in known:
            text = f"subject.{declared.name}.{name}: {declared.path} is a {subject.kind}, which has no {name!r}"
            raise UsageError(text)
    return dataclasses.replace(subject, **declared.fields)


def chosen(names: Sequence[str], config: Path | None) -> list[Chosen]:
    """The subjects that these names mean; without names all that ``crashlab.toml`` declares.

    ``config`` is the file; else it is looked for from here upwards. Raises UsageError for a name that means nothing.
    """
    file = config if config is not None else context.project_file()
    project = None if file is None else read(file)
    if names:
        return [_named(name, project) for name in names]
    if project is None:
        text = f"name a subject as MODULE:OBJECT, or declare some in {context.PROJECT_FILE}: crashlab init writes one"
        raise UsageError(text)
    if not project.subjects:
        text = f"{os.path.relpath(project.file)} declares no subject; add a table [subject.NAME], or name MODULE:OBJECT"
        raise UsageError(text)
    return [_declared(each, project) for each in project.subjects.values()]


def _declared(declared: Declared, project: Project) -> Chosen:
    return Chosen(subject=declared.commands or declared.path, project=project, declared=declared)


def _named(name: str, project: Project | None) -> Chosen:
    if project is not None and name in project.subjects:
        return _declared(project.subjects[name], project)
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        declared = [] if project is None else list(project.subjects)
        near = difflib.get_close_matches(name, declared, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        known = f" {os.path.relpath(project.file)} declares {', '.join(declared) or 'none'}." if project else ""
        text = f"{name!r} names no subject; {hint}write MODULE:OBJECT, for example myapp.crash:checkpoint.{known}"
        raise UsageError(text.rstrip("."))
    if module.endswith(".py"):
        meant = module.removesuffix(".py").strip("./").replace("/", ".")
        text = f"{name!r} names a file; write the module: {meant}:{attribute}"
        raise UsageError(text)
    return Chosen(subject=name, project=project)
