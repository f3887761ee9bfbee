"""Imports point one way only, and modules stay small."""

import ast
import re
import statistics
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1] / "src" / "hcnet"

# A module may import from its own layer and from those above it in this list: from the maths to
# what a person holds.  A package stands for all its modules that are not listed by themselves.
LAYERS = (
    # Formulas, and what data and layers are.
    (
        "factors",
        "grid",
        "images",
        "layers",
        "names",
        "version",
        "atomic_files",
        "zip_files",
        "memory",
    ),
    ("checks",),
    ("image_files",),
    ("datasets", "engine.schedules", "engine.driver", "engine.planes"),
    ("engine.compilation", "engine.cpu_compilation", "engine.threads"),
    ("messages", "objective", "archive"),
    ("checkpoint",),
    ("engine", "solutions"),  # numbers: messages, and discrete solutions
    ("engine.placements", "progress", "environment"),
    ("model", "refine", "soft"),
    ("learning",),
    ("factorization", "hierarchy", "templates"),
    ("online",),
    ("validation",),
    ("plotting",),
    ("estimators", "preprocessing"),
    ("reporting", "export", "reading", "codec"),
    ("hcnet",),  # the public names
    ("metrics",),
    ("demo",),
    ("commands",),
    ("cli", "__main__"),
)


def _name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__") or "hcnet"


MODULES = {_name(path): path for path in sorted(ROOT.rglob("*.py"))}


def _imports(path):
    """Modules of hcnet that a module imports, anywhere in its code."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("hcnet")}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively; write the full name"
            if node.module.partition(".")[0] == "hcnet":
                found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {_module(name) for name in found} - {_name(path)}


def _module(name):
    """The module that an imported name is, or lives in."""
    short = name.removeprefix("hcnet.")
    while short not in MODULES:
        if "." not in short:
            return "hcnet"
        short = short.rpartition(".")[0]
    return short


def _layer(module):
    listed = {name: depth for depth, layer in enumerate(LAYERS) for name in layer}
    name = module
    while name not in listed:
        assert "." in name, f"{module} is in no layer: add it to LAYERS"
        name = name.rpartition(".")[0]
    return listed[name]


def test_imports_point_one_way():
    wrong = [
        f"{module} imports {other}"
        for module, path in MODULES.items()
        for other in _imports(path)
        if _layer(other) > _layer(module)
    ]
    assert wrong == []


def test_no_two_modules_import_each_other():
    graph = {module: _imports(path) for module, path in MODULES.items()}
    assert set(TopologicalSorter(graph).static_order()) == set(MODULES)  # raises on a cycle


def test_the_picture_in_the_design_names_the_layers():
    page = (ROOT.parents[1] / "docs" / "design.md").read_text(encoding="utf-8")
    rows = page.partition("── command line")[2].partition("\n\n")[0].splitlines()[1:]
    left = " ".join(row[:46] for row in rows if "──" not in row)  # on the right are descriptions
    names = [f"engine{name}" if name[0] == "." else name for name in re.findall(r"[a-z._]+", left)]
    listed = [name for layer in LAYERS for name in layer if name != "__main__"]
    assert sorted(names) == sorted(listed)


def test_modules_stay_small():
    lines = {
        module: len(path.read_text(encoding="utf-8").splitlines())
        for module, path in MODULES.items()
        if path.name != "__init__.py"
    }
    assert {module: n for module, n in lines.items() if n > 600} == {}
    assert statistics.median(lines.values()) < 200


def test_one_import_is_enough_for_everything_that_people_use():
    code = (
        "import hcnet\n"
        "for name in dir(hcnet):\n"
        "    getattr(hcnet, name)\n"
        "print(hcnet.image_files.read_images, hcnet.datasets.letters, hcnet.metrics.part_iou,\n"
        "      hcnet.plotting.show_images, hcnet.preprocessing.LineRemover)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120, capture_output=True)
