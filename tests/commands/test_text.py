"""Naming parts and reading text, as processes and inside."""

import json

from running import inside, one_sentence, run

from hcnet import FeatureLearner
from hcnet.image_files import read_images
from hcnet.reading import read_pages


def test_names_are_stored_in_the_model_or_in_another(parts, tmp_path, hcnet):
    model, names = tmp_path / "bars.hcn", tmp_path / "names.csv"
    model.write_bytes(parts[0].read_bytes())
    names.write_text("part,name\n0,-\n1,l\n")
    result = hcnet("name", model, names, "-o", tmp_path / "named.hcn")
    assert result.returncode == 0, result.stderr
    assert FeatureLearner.load(tmp_path / "named.hcn").part_names_[:2].tolist() == ["-", "l"]
    assert model.read_bytes() == parts[0].read_bytes()
    assert "exists already" in one_sentence(
        inside("name", model, names, "-o", tmp_path / "named.hcn"), 3
    )
    assert "part 1 l" in run("show", tmp_path / "named.hcn").stdout
    shown = json.loads(run("show", tmp_path / "named.hcn", "--json").stdout)
    assert shown["part_names"][:2] == ["-", "l"]
    told = json.loads(run("name", model, names, "--json").stdout)
    assert told == {"model": str(model), "named": 2, "parts": parts[1]["parts"]}
    assert model.read_bytes() == (tmp_path / "named.hcn").read_bytes()


def test_names_that_do_not_fit_leave_the_model_alone(parts, network, tmp_path):
    names = tmp_path / "names.csv"
    before = parts[0].read_bytes()
    names.write_text("part,name\n99,a\n")
    assert "There is no part 99" in one_sentence(inside("name", parts[0], names))
    names.write_text("part,name\n0,a,b\n")
    assert "line 2 has 3 columns" in one_sentence(inside("name", parts[0], names))
    assert "cannot be used" in one_sentence(inside("name", parts[0], tmp_path / "none.csv"))
    assert "cannot be used (is a directory)" in one_sentence(inside("name", parts[0], tmp_path))
    assert "name needs parts" in one_sentence(inside("name", network[0], names))
    assert parts[0].read_bytes() == before


def test_text_is_printed_or_written_and_placeholders_are_counted(parts, folder, tmp_path, hcnet):
    model, names, scan = tmp_path / "m.hcn", tmp_path / "n.csv", folder / "scans" / "page0.png"
    assert "No part of" in one_sentence(inside("read", scan, "--model", parts[0]))
    names.write_text("part,name\n0,—\n")
    run("name", parts[0], names, "-o", model)
    learner = FeatureLearner.load(model)
    (page,) = read_pages(learner, read_images(scan).X)
    result = hcnet("read", scan, "--model", model)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "\n".join(page.lines) + "\n"
    assert "—" in result.stdout
    said = f"□ stands {page.unnamed.total()}× for parts without a name (most often part 1"
    assert said in result.stderr
    run("read", folder / "scans", "--model", model, "-o", tmp_path / "text.txt", "--quiet")
    both = (tmp_path / "text.txt").read_text(encoding="utf-8")
    assert both.startswith(result.stdout + "\n")
    again = inside("read", scan, "--model", model, "-o", tmp_path / "text.txt")
    assert "exists already" in one_sentence(again, 3)
    told = json.loads(run("read", scan, "--model", model, "--json").stdout)
    assert told["pages"] == [{"page": "page0.png", "lines": page.lines}]
    assert told["unnamed"] == {str(part): n for part, n in page.unnamed.items()}
