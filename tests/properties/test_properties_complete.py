"""Every public name has a property test."""

import importlib
import inspect
from pathlib import Path

from strategies import COVERED

import hcnet
from hcnet import codec, datasets, export, metrics, plotting, preprocessing, reading, reporting

# Tested elsewhere: a string, and a callback that tests/reporting tests.
ELSEWHERE = {"hcnet.__version__", "hcnet.reporting.LiveReport", "hcnet.reading.PLACEHOLDER"}
INHERITED = {"count", "index", "get_params", "get_metadata_routing", "set_output"}
INHERITED |= {"get_feature_names_out"}


def public_names():
    modules = (hcnet, codec, datasets, export, plotting, preprocessing, reading, reporting)
    named = {f"{m.__name__}.{name}": getattr(m, name) for m in modules for name in m.__all__}
    for name, thing in vars(metrics).items():
        if inspect.isfunction(thing) and thing.__module__ == metrics.__name__ and name[0] != "_":
            named[f"hcnet.metrics.{name}"] = thing
    for name, thing in list(named.items()):
        if inspect.isclass(thing):
            methods = [m for m, f in inspect.getmembers(thing, callable) if m[0] != "_"]
            if methods and name.startswith("hcnet.") and name.count(".") == 1:
                del named[name]  # a class is what its methods are
            ours = {m for m in methods if not m.endswith("_request")} - INHERITED
            named |= {f"{name}.{m}": None for m in ours}
    return set(named) - ELSEWHERE


def test_every_public_name_has_a_property_test():
    for path in Path(__file__).parent.glob("test_properties_*.py"):
        importlib.import_module(path.stem)
    missing = public_names() - COVERED
    assert missing == set(), "write a property test in tests/properties, decorated with about(name)"
    assert COVERED - public_names() == set()  # no test is about something that is gone
