"""How the command behaves among other programs: help, pipes, completion, facts."""

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import fields

import pytest
from running import COMMAND, Terminal, hcnet, inside, one_sentence

from hcnet import HCN, Engine, FeatureLearner, Layer, TemplateClassifier, __version__
from hcnet.cli import COMMANDS, make_parser
from hcnet.commands import learn
from hcnet.names import ENGINE_NAMES

NAMES = [command.name for command in COMMANDS]


@pytest.mark.parametrize("name", NAMES)
def test_every_command_explains_itself_with_an_example(name):
    result = inside(name, "--help")
    assert result.returncode == 0
    assert f"Example:\n  {'hcnet' if name != 'completion' else 'eval'}" in result.stdout
    assert "%(" not in result.stdout
    assert inside("help", name).stdout == result.stdout


def test_examples_are_words_that_the_parser_takes():
    parser, _ = make_parser()
    for command in COMMANDS:
        for line in command.example.replace("\\\n", "").splitlines():
            words = line.split("#")[0].split("|")[0].split()
            if words[0] == "hcnet":
                parser.parse_args(words[1:])


def test_help_and_errors_need_nothing_heavy():
    code = (
        "import sys\nfrom hcnet.cli import main\n"
        "assert main(['show', 'nothing.hcn']) == 1\n"
        "print(*sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    loaded = {name.partition(".")[0] for name in result.stdout.split()}
    assert not loaded & {"numba", "numpy", "PIL", "scipy", "sklearn", "tqdm"}


def test_options_are_the_parameters_of_the_estimators():
    given = {"FeatureLearner": set(), "HCN": {"layers"}, "TemplateClassifier": set()}
    for option in learn.OPTIONS:
        for kind in option.of:
            if option.name not in learn.ENGINE_OPTIONS:
                given[kind].add(option.name)
    assert {"name", *learn.ENGINE_OPTIONS} == {field.name for field in fields(Engine)}
    for model in (FeatureLearner(), HCN([Layer()]), TemplateClassifier()):
        # An object with many limits is for Python.
        wanted = set(model.get_params(deep=False)) - {"verbose", "callback", "deformations"}
        assert given[type(model).__name__] == wanted
    assert set(learn.LAYER_KEYS) == set(Layer.__dataclass_fields__)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "hcnet: error: the following arguments are required: COMMAND"),
        (["dance"], "hcnet: error: there is no command 'dance'"),
        (["export", "x.hcn"], "no command 'export'; models are exported in Python"),
        (["lern", "x.png"], "there is no command 'lern'; did you mean learn?"),
        (["demo"], "hcnet demo: error: the following arguments are required: --output/-o"),
        (["demo", "-o", ""], "argument --output/-o: must be a path, got nothing; . is this folder"),
        (["learn", "", "-o", "x.hcn"], "argument IMAGES: must be a path, got nothing"),
        (["info", "--loud"], "hcnet info: error: unrecognized arguments: --loud"),
        (["info", "--jason"], "unrecognized arguments: --jason; did you mean --json?"),
        (
            ["learn", "x.png", "-o", "x.hcn", "--features=3"],
            "unrecognized arguments: --features=3; did you mean --n-features?",
        ),
    ],
)
def test_wrong_words_are_explained(arguments, message):
    result = inside(*arguments)
    assert result.returncode == 2
    usage, error = result.stderr.splitlines()
    assert usage.startswith("usage: hcnet ")
    assert message in error


def test_what_is_wrong_is_not_repeated_for_ever(tmp_path):
    (tmp_path / "a.toml").write_text(f"[[layers]]\n{'9' * 100_000} = 1\n")
    result = inside("learn", "x.png", "-o", "x.hcn", "--settings", tmp_path / "a.toml")
    assert result.returncode == 2
    assert "argument --layer: must be KEY=VALUE pairs" in result.stderr
    assert len(result.stderr) < 1000


def test_options_may_be_spelled_as_in_python(folder, tmp_path):
    words = ["--feature_size", 7, "--n_init=1", "--max_iter", 1, "--p_W=0.1", "--p_S", 0.01]
    result = inside("learn", folder / "bars0.npy", *words, "-o", tmp_path / "a_b.hcn", "--json")
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["feature_size"] == [7, 7]
    assert told["p_W"] == 0.1
    assert (tmp_path / "a_b.hcn").is_file()


def test_version_help_and_facts_about_the_machine():
    assert inside("--version").stdout == f"hcnet {__version__}\n"
    assert inside("help").stdout == inside("--help").stdout != ""
    result = hcnet("info", "--json")
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["versions"]["hcnet"] == __version__
    assert tuple(told["engines"]) == ENGINE_NAMES
    assert told["cores"] >= 1
    assert told["memory"] > 2**28
    text = inside("info").stdout
    assert "active (default)" in text


def test_gpus_are_named_as_their_driver_does(tmp_path, monkeypatch):
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'Big Card, 80000 MiB'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert "Big Card, 80000 MiB" in inside("info").stdout


def test_a_reader_that_leaves_is_no_error(parts, folder):
    words = [*COMMAND, "encode", str(parts[0]), str(folder / "scans")]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    said = process.communicate(timeout=120)[1].decode()
    assert process.returncode == 141
    assert "Traceback" not in said
    assert "error" not in said


def test_an_error_of_our_own_is_one_sentence_and_can_be_traced(parts, folder, monkeypatch):
    def broken(self, *given):
        raise RuntimeError("never\nmind")

    monkeypatch.setattr(FeatureLearner, "placements", broken)
    result = inside("encode", parts[0], folder / "scans", "--quiet")
    sentence = "This is an error of hcnet itself (RuntimeError: never mind)."
    assert one_sentence(result, own=True) == sentence
    monkeypatch.setenv("HCNET_TRACEBACK", "1")
    with pytest.raises(RuntimeError):
        inside("encode", parts[0], folder / "scans")


COMPLETED = {
    "hcnet le": "learn",
    "hcnet learn --n-f": "learn --n-features",
    "hcnet learn --ink d": "learn --ink dark",
    "hcnet show mod": "show model.hcn",
}
STARTS = {  # how a shell is started, and how it reads the script
    "bash": (["bash", "--norc", "-i"], 'eval "$(hcnet completion bash)"'),
    "zsh": (
        ["zsh", "-f", "-i"],
        'autoload -Uz compinit; compinit -u -D; eval "$(hcnet completion zsh)"',
    ),
}


@pytest.fixture
def commands_echoed(tmp_path, monkeypatch):
    """A program hcnet that shows the words it is called with, except for its completion."""
    program = tmp_path / "hcnet"
    program.write_text(
        f'#!/bin/sh\n[ "$1" = completion ] && exec {sys.executable} -m hcnet "$@"\necho "<$*>"\n'
    )
    program.chmod(0o755)
    (tmp_path / "model.hcn").touch()
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("shell", STARTS)
def test_a_shell_completes_commands_options_choices_and_files(shell, commands_echoed):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    command, setup = STARTS[shell]
    with Terminal(*command, program=True) as terminal:
        terminal.type(f"PS1=; {setup}; echo re''ady\n")
        terminal.wait_for(b"ready")
        for typed, words in COMPLETED.items():
            terminal.type(f"{typed}\t\n")
            terminal.wait_for(f"<{words}>".encode())


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes(commands_echoed):
    for typed, words in COMPLETED.items():
        script = f"hcnet completion fish | source; complete --do-complete '{typed}'"
        found = subprocess.run(["fish", "-c", script], capture_output=True, text=True, check=True)
        assert [line.split("\t")[0] for line in found.stdout.splitlines()] == [words.split()[-1]]


def test_completion_without_its_library_is_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert "pip install 'hcnet[completion]'" in one_sentence(inside("completion", "bash"))


def test_interrupt_is_polite(tmp_path):
    with Terminal("demo", "--output", tmp_path, listening=True) as terminal:
        terminal.wait_for(b"Message passing")
        terminal.process.send_signal(signal.SIGINT)
        _, code = terminal.finish()
    assert code == 130
    assert b"Traceback" not in terminal.said
    assert terminal.said.rstrip().endswith(b"Interrupted.")
    assert list(tmp_path.iterdir()) == []
