"""What a check was asked for, resolved: argument, marker, command line, environment, ``crashlab.toml``, default.

Read from the environment: ``CRASHLAB_BUDGET``, ``CRASHLAB_FAULTS``, ``CRASHLAB_OUT``, ``CRASHLAB_JOBS``.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from crashlab import context
from crashlab.crash.profiles import DEFAULT, Profile, parse_profile, parse_profiles
from crashlab.errors import UsageError
from crashlab.faults import FaultRequest, parse_faults
from crashlab.report.model import Settings
from crashlab.subject import Budget, Policy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crashlab.baseline import Baseline

RECORDERS = ("auto", "python", "strace")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The resolved arguments of :func:`crashlab.check`."""

    faults: tuple[FaultRequest, ...]
    policy: Mapping[str, Policy]
    budget: Budget
    profiles: tuple[Profile, ...] = ()
    seed: int = 0
    jobs: int = 1
    recorder: str = "auto"
    only: str | None = None
    disk: str | None = None
    redundant: bool = False
    out: Path = field(default_factory=lambda: Path(".crashlab"))
    baseline: Baseline | None = None

    def asks(self, fault: str) -> bool:
        """Whether this fault was asked for."""
        return any(request.name == fault for request in self.faults)

    @property
    def loses_power(self) -> bool:
        """Whether power losses of the run are needed: asked for, or because crashes of recoveries alone are."""
        return self.asks("power") or (self.asks("recovery") and not self.asks("kill"))

    def names(self, fault: str) -> bool:
        """Whether this fault was asked for by its name, and not only by ``"all"``."""
        return self.asks(fault) and self.faults != parse_faults("all")

    def policy_of(self, fault: str) -> Policy:
        """What ``fault`` demands: the given policy over the default."""
        return self.policy.get(fault, Policy()).over(Policy.default(fault))

    @property
    def bound(self) -> int:
        """How many states one cut of the metadata may have to be gone through whole: all subsets of so many writes."""
        return int(2**self.budget.subset)

    @property
    def bits(self) -> int:
        """Up to how many bits a damaged file is gone through whole: 1,024 of a quick budget, 65,536 of a full one."""
        return 16 * self.bound

    @property
    def sample(self) -> int:
        """How many picks a larger cut gets beyond its core."""
        return min(self.bound, self.budget.sample)

    @property
    def every(self) -> int:
        """One in how many of what is alike is tried; the one that is asked for by its id in any case."""
        return self.budget.every if self.only is None else 1

    @property
    def edges(self) -> bool:
        """Whether of a large file only the first, the middle and the last blocks are tried one by one."""
        return self.budget.cuts == "edges"

    @property
    def named_profiles(self) -> tuple[Profile, ...]:
        """The profiles that were asked for, and that of the real disk: its states are named by it."""
        more = () if self.disk is None else (parse_profile(self.disk),)
        return tuple({str(profile): profile for profile in (*self.profiles, *more)}.values())

    @property
    def profile(self) -> str:
        """The profiles as a list that :func:`crashlab.crash.profiles.parse_profiles` reads."""
        return ",".join(str(profile) for profile in self.profiles)

    def shown(self, *, recovery: str, recorder: str) -> Settings:
        """The settings as the report holds them."""
        return Settings(
            faults=tuple(str(fault) for fault in self.faults),
            profile=tuple(str(each) for each in self.named_profiles) if self.loses_power or self.disk else (),
            disk=self.disk or "",
            policy={fault.name: dataclasses.asdict(self.policy_of(fault.name)) for fault in self.faults},
            budget=dataclasses.asdict(self.budget),
            seed=self.seed,
            recorder=recorder,
            recovery=recovery,
        )


class Options(TypedDict, total=False):
    """The keyword arguments of :func:`crashlab.check`; what is left out has its default."""

    faults: str | None
    profile: str | None
    policy: Mapping[str, Policy] | None
    budget: str | Budget | None
    seed: int | None
    jobs: int | None
    recorder: str | None
    only: str | None
    disk: str | None
    redundant: bool | None
    out: str | os.PathLike[str] | None
    baseline: str | os.PathLike[str] | None
    accept: str | None


def resolve(**options: Unpack[Options]) -> Asked:
    """Resolve the arguments. Raises UsageError for a value that means nothing."""
    for name in (*options, *context.current.marker):
        if name in Options.__annotations__:
            continue
        near = difflib.get_close_matches(name, Options.__annotations__, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        text = f"unknown argument {name!r}; {hint}Known: {', '.join(Options.__annotations__)}"
        raise UsageError(text)
    given = context.merged(options, declared())
    profile, policy, recorder = given.get("profile"), given.get("policy"), given.get("recorder")
    only, disk = given.get("only"), given.get("disk")
    requests = parse_faults(given.get("faults"))
    if policy and not (options.get("policy") or context.current.marker.get("policy")):
        # A file says once for all its checks what each fault demands, whichever of them a check asks for.
        policy = {name: each for name, each in policy.items() if name in {request.name for request in requests}}
    for name, each in (policy or {}).items():
        if name not in {request.name for request in requests} or not isinstance(each, Policy):
            text = f"policy for {name!r}: expected a Policy for one of the faults {[str(each) for each in requests]}"
            raise UsageError(text)
    if recorder is not None and recorder not in RECORDERS:
        text = f"unknown recorder {recorder!r}; known: {', '.join(RECORDERS)}"
        raise UsageError(text)
    if disk is not None and only is not None:
        text = "a real disk shows what it will, so one state cannot be asked of it: leave out only, or the disk"
        raise UsageError(text)
    return Asked(
        faults=requests,
        profiles=parse_profiles(profile if profile is not None else DEFAULT),
        policy=policy or {},
        budget=Budget.of(given.get("budget")),
        seed=given.get("seed") or 0,
        jobs=_jobs(given.get("jobs")),
        recorder=recorder or "auto",
        only=only,
        disk=_disk(disk),
        redundant=bool(given.get("redundant")),
        out=_out(options, given),
        baseline=_baseline(given.get("baseline"), given.get("accept")),
    )


def declared() -> Mapping[str, Any]:
    """What the ``[defaults]`` of ``crashlab.toml`` say; nothing without one. Raises UsageError for a broken one."""
    file = context.project_file()
    if file is None:
        return {}
    from crashlab.project import read  # noqa: PLC0415 - few checks have such a file, and it imports this module

    return read(file).defaults


def _out(options: Options, given: Mapping[str, Any]) -> Path:
    """Where runs are kept: a test names a place from where it is, all others from where the run of tests began."""
    named = options.get("out") or context.current.marker.get("out")
    return Path(named) if named else context.placed(given.get("out", ".crashlab"))


def out_folder(given: Path | None) -> Path:
    """Where runs are kept: as the command line says, or the environment, or ``crashlab.toml``, or ``.crashlab``."""
    return Path(context.merged({"out": given}, declared()).get("out", ".crashlab"))


def _baseline(file: str | os.PathLike[str] | None, accept: str | None) -> Baseline | None:
    """The accepted findings: of ``file``, else of the file beside ``crashlab.toml``, or here; None without one."""
    from crashlab import baseline  # noqa: PLC0415 - few projects have one

    project = context.project_file()
    folder = context.placed() if project is None or project.parent == Path.cwd() else project.parent
    usual = folder / baseline.FILE
    if file is None and accept is None and not usual.is_file():
        return None
    return baseline.Baseline.read(Path(file or usual), accept=accept, given=file is not None)


def _disk(kind: str | None) -> str | None:
    """The kind of real disk, if one is asked for. Raises UsageError for an unknown one, or where it cannot be made."""
    if kind is None:
        return None
    from crashlab.disk.available import missing  # noqa: PLC0415 - few checks want a disk

    if why := missing(kind):
        text = f"no real {kind} disk can be made here: {why}. The computed states need none: leave out the disk"
        raise UsageError(text)
    return kind


def _jobs(jobs: int | str | None) -> int:
    """How many workers: given, or the cores divided among pytest-xdist's workers."""
    asked: Any = jobs
    if asked is None:
        workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
        return max(1, _cores() // workers)
    try:
        number = int(asked)
    except ValueError:
        number = 0
    if number < 1:
        text = f"jobs is {asked!r}; expected a whole number from 1 on"
        raise UsageError(text)
    return number


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
