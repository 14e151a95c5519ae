"""What is in the wheel and in the source archive, and what they say of themselves."""

from __future__ import annotations

import configparser
import re
import tarfile
import tomllib
import zipfile
from typing import TYPE_CHECKING

import pytest
from packaging.metadata import Metadata

import crashlab
from crashcourse.material import FOLDERS
from tests.packaging.conftest import ROOT, build

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PACKAGES = ("crashlab", "longrun", "crashcourse")
INFO = f"crashlab-{crashlab.__version__}.dist-info"
LEFTOVERS = re.compile(r"(\.pyc|\.orig|\.rej|\.swp|~)$|(^|/)(__pycache__|\.git|\.venv|\.crashlab|\.hypothesis)(/|$)")


def sources() -> set[str]:
    """Every file of the packages, as the wheel names it."""
    found = {
        path.relative_to(ROOT / "lab").as_posix()
        for package in PACKAGES
        for path in (ROOT / "lab" / package).rglob("*")
        if path.is_file()
    }
    return {name for name in found if "__pycache__" not in name}


def material() -> set[str]:
    """Every file of the course, by its path in the repository."""
    every = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file())
    return {path.relative_to(ROOT).as_posix() for path in every if "__pycache__" not in path.parts}


def unpacked(archive: Path) -> dict[str, bytes]:
    """Name and bytes of each file of a wheel."""
    with zipfile.ZipFile(archive) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def archived(archive: Path) -> dict[str, bytes]:
    """The same of a source archive, without the folder that everything lies in."""
    with tarfile.open(archive) as opened:
        members = [member for member in opened.getmembers() if member.isfile()]
        return {member.name.partition("/")[2]: opened.extractfile(member).read() for member in members}


def test_the_wheel_has_every_file_of_the_packages_and_no_other(wheel: Path) -> None:
    """Templates, the schema and the markers of types among them; neither tests nor benchmarks."""
    files = unpacked(wheel)
    assert {name for name in files if not name.startswith(f"{INFO}/")} == sources() | {
        f"crashcourse/material/{name}" for name in material()
    }
    for name in (
        "crashlab/report/schema.json",
        "crashlab/report/templates/report.html.j2",
        "crashlab/report/templates/page.css",
        "crashlab/report/templates/page.js",
        *(f"{package}/py.typed" for package in PACKAGES),
    ):
        assert name in files
    assert not [name for name in files if name.split("/")[0] not in {*PACKAGES, INFO} or "/test_" in name]


def test_the_wheel_is_pure_python(wheel: Path) -> None:
    """One wheel for every machine."""
    assert wheel.name == f"crashlab-{crashlab.__version__}-py3-none-any.whl"


def test_the_wheel_has_its_commands_its_plugin_and_its_licence(wheel: Path) -> None:
    """The entry points are those of the build file, and what they name is in the wheel."""
    files = unpacked(wheel)
    entries = configparser.ConfigParser(delimiters="=")
    entries.read_string(files[f"{INFO}/entry_points.txt"].decode())
    assert dict(entries["console_scripts"]) == PROJECT["scripts"]
    assert dict(entries["pytest11"]) == PROJECT["entry-points"]["pytest11"]
    for section in entries.sections():
        for target in entries[section].values():
            assert target.partition(":")[0].replace(".", "/") + ".py" in files
    assert files[f"{INFO}/licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()


def test_the_metadata_is_valid_and_brings_the_first_page(wheel: Path) -> None:
    """What an index checks before it takes a package: valid fields, and a description in a form that it can draw."""
    metadata = Metadata.from_email(unpacked(wheel)[f"{INFO}/METADATA"], validate=True)
    assert (metadata.name, str(metadata.version)) == ("crashlab", crashlab.__version__)
    assert (metadata.description_content_type or "").split(";")[0] == "text/markdown"
    assert (metadata.description or "").strip() == (ROOT / "README.md").read_text().strip()
    assert metadata.license_expression == "MIT"
    assert str(metadata.requires_python) == PROJECT["requires-python"]
    core = [str(need) for need in metadata.requires_dist or [] if need.marker is None]
    assert sorted(core) == sorted(PROJECT["dependencies"])
    assert set(metadata.provides_extra or []) == set(PROJECT["optional-dependencies"])


def test_the_source_archive_has_what_a_clone_has(sdist: Path) -> None:
    """Tests, build files and pages, so that whoever packages it can run all of it; nothing that was made by running."""
    files = archived(sdist)
    for name in (
        "Makefile",
        "constraints.txt",
        ".ci/run",
        "tests/conftest.py",
        "lab/benchmarks/__main__.py",
        "LICENSE",
    ):
        assert name in files
    assert {f"lab/{name}" for name in sources()} | material() <= set(files)
    assert [name for name in files if LEFTOVERS.search(name)] == []


@pytest.mark.parametrize("name", ["a.orig", "b/__pycache__/c.pyc", ".git/HEAD", "d~"])
def test_leftovers_would_be_seen(name: str) -> None:
    """The pattern knows what it looks for."""
    assert LEFTOVERS.search(name)
    assert not LEFTOVERS.search("lab/crashlab/report/original.py")


def test_the_wheel_of_the_source_archive_is_the_wheel(sdist: Path, wheel: Path, tmp_path: Path) -> None:
    """Whoever installs from the archive gets the same bytes."""
    with tarfile.open(sdist) as opened:
        opened.extractall(tmp_path / "unpacked", filter="data")
    (folder,) = (tmp_path / "unpacked").iterdir()
    assert unpacked(build(folder, tmp_path / "made", "wheel")) == unpacked(wheel)
