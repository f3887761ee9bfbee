"""The documentation is true: its code runs, its commands and links exist, the site builds.

The Python blocks of a page run in order, in an empty folder and without network.  A block of
``text`` right after one of them is its expected output.  A block below ``<!-- long -->`` and the
rest of its page run with the long tests only.
"""

import contextlib
import io
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from character_files import write_alphabet, write_run

from hcnet.cli import make_parser

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(
    r"(?P<long><!-- long -->\s*)?^```python\n(?P<code>.*?)^```$"
    r"(?:\n\n?^```text\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MAKE = re.compile(r"`make ([a-z-]+)(?: NAME=(\w+))?")


@dataclass(frozen=True)
class Block:
    code: str
    line: int
    output: str | None
    long: bool


def blocks(page):
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            code=found["code"],
            line=text.count("\n", 0, found.start("code")),
            output=found["output"],
            long=found["long"] is not None,
        )
        for found in BLOCK.finditer(text)
    ]


def quick(page):
    """Return the blocks of a page before the first long one."""
    found = blocks(page)
    return found[: next((k for k, block in enumerate(found) if block.long), len(found))]


def run(page, chosen):
    names = {"__name__": "__main__"}
    for block in chosen:
        # Empty lines before the code: an error then names the line of the page.
        code = compile("\n" * block.line + block.code, str(page), "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        if block.output is not None:
            assert printed.getvalue().strip() == block.output.strip(), f"{page}:{block.line}"


@pytest.fixture
def elsewhere(tmp_path, monkeypatch, digits_folder):
    """Work in a folder with characters alone, with digits in place of MNIST, without network."""

    def refuse(*_):
        raise OSError("The documentation must run without network.")

    monkeypatch.setenv("HCNET_DATA", str(digits_folder))
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "omniglot" / "run01", n=20)
    write_alphabet(tmp_path / "omniglot" / "Greek", n_characters=20)


@pytest.mark.parametrize("page", [p for p in PAGES if quick(p)], ids=lambda page: page.stem)
def test_the_code_of_a_page_runs(page, elsewhere):
    run(page, quick(page))


@pytest.mark.long
@pytest.mark.parametrize(
    "page", [p for p in PAGES if len(quick(p)) < len(blocks(p))], ids=lambda page: page.stem
)
def test_the_code_of_a_page_runs_to_its_end(page, elsewhere):
    run(page, blocks(page))


def test_all_code_of_the_pages_is_found():
    fences = sum(page.read_text(encoding="utf-8").count("```python") for page in PAGES)
    assert sum(len(blocks(page)) for page in PAGES) == fences > 10


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_to_files(page):
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" not in target and not target.startswith(("#", "mailto:")):
            assert (page.parent / target.partition("#")[0]).exists(), target


def shell_lines(page):
    text = "".join(FENCE.findall(page.read_text(encoding="utf-8"))).replace("\\\n", " ")
    return [shlex.split(line, comments=True) for line in text.splitlines() if "hcnet " in line]


def test_commands_of_the_pages_are_accepted(capsys):
    parser, _ = make_parser()
    lines = [words for page in PAGES for words in shell_lines(page) if words[0] == "hcnet"]
    assert len(lines) > 10
    for words in lines:
        end = words.index("|") if "|" in words else len(words)
        parser.parse_args(words[1:end])


def test_targets_and_benchmarks_of_the_pages_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "benchmarks" / "NOTES.md"]:
        for target, name in MAKE.findall(page.read_text(encoding="utf-8")):
            assert f"\n{target}:" in makefile, f"{page.name}: make {target}"
            assert not name or (ROOT / "benchmarks" / f"{name}.py").exists(), f"{page.name}: {name}"


def test_names_of_the_notation_exist():
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    text = (ROOT / "docs" / "notation.md").read_text(encoding="utf-8")
    names = re.findall(r"[A-Za-z_]\w+", " ".join(re.findall(r"`([^`\n]+)`", text)))
    assert len(names) > 80
    assert [name for name in names if not re.search(rf"\b{name}\b", source)] == []


PATCH = re.compile(r"^```diff\n--- (?P<file>\S+)\n(?P<lines>.*?)^```$", re.MULTILINE | re.DOTALL)

# Must run with the patches of docs/extending.md.
DOUBLING = """
from hcnet import Engine, FeatureLearner
from hcnet.datasets import deconvolution
data = deconvolution(n_images=20, random_state=0)
for engine in ("active", "beliefs", "dense", "reference"):
    how = Engine(engine, schedule="doubling")
    options = {"algorithm": "mpmp", "engine": how, "max_iter": 3}
    learner = FeatureLearner(4, 5, n_init=1, random_state=0, **options).fit(data.images)
    assert len(learner.placements_)
"""


@pytest.fixture
def extended(tmp_path):
    """Copy the source and apply the patches of the page on extending."""
    for part in ("src", "tests"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    patches = list(PATCH.finditer(page))
    assert len(patches) == page.count("```diff") == 4
    for patch in patches:
        path = tmp_path / patch["file"]
        lines = patch["lines"].splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if line[0] in " -")
        after = "".join(line[1:] for line in lines if line[0] in " +")
        text = path.read_text(encoding="utf-8")
        assert text.count(before) == 1, f"{patch['file']} does not hold once:\n{before}"
        path.write_text(text.replace(before, after), encoding="utf-8")
    return tmp_path


def python(folder, *command):
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_the_patches_on_extending_pass_their_tests(extended):
    tests = ["tests/engine/test_schedules.py", "tests/test_factors.py", "-k", "doubling or at_most"]
    done = python(extended, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert re.search(r"\b2[0-9] passed", done.stdout), done.stdout


@pytest.mark.long
def test_the_patched_library_learns(extended):
    done = python(extended, "-c", DOUBLING)
    assert done.returncode == 0, done.stderr[-3000:]
    tests = ["tests/engine/test_engines_agree.py", "-k", "doubling"]
    done = python(extended, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
    assert done.returncode == 0, done.stdout[-3000:]


def test_the_site_builds_without_a_warning(tmp_path):
    done = python(
        ROOT, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path / "site")
    )
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {path.name for path in (tmp_path / "site").glob("*.html")}
    assert {f"{page.stem}.html" for page in PAGES[1:]} | {"index.html", "changes.html"} <= pages
    # The reference has methods of its own and inherited ones.
    reference = (tmp_path / "site" / "reference.html").read_text(encoding="utf-8")
    assert all(f"HCN.{name}" in reference for name in ("fit", "partial_fit", "save"))
