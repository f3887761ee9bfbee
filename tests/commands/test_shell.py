"""How the command behaves among other programs: help, pipes, completion, facts."""

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest
from running import COMMAND, Terminal, hcnet, inside, one_sentence

from hcnet import HCN, FeatureLearner, Layer, __version__
from hcnet.cli import COMMANDS, make_parser
from hcnet.commands import learning_options
from hcnet.engine.choice import ENGINE_NAMES
from hcnet.engine.schedules import SCHEDULE_NAMES
from hcnet.estimators.hcn import _ALGORITHMS as NETWORK_ALGORITHMS
from hcnet.hierarchy.inference import METHODS
from hcnet.image_files.binarising import INKS
from hcnet.learning.options import ALGORITHMS

NAMES = [command.name for command in COMMANDS]


def test_version():
    result = hcnet("--version")
    assert result.stdout.strip() == f"hcnet {__version__}"
    assert result.returncode == 0


@pytest.mark.parametrize("name", NAMES)
def test_every_command_explains_itself_with_an_example(name):
    result = inside(name, "--help")
    assert result.returncode == 0
    assert f"Example:\n  {'hcnet' if name != 'completion' else 'eval'}" in result.stdout
    assert "%(" not in result.stdout


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
        "assert main(['completion', 'words', '--', 'le']) == 0\n"
        "print(*sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    loaded = {name.partition(".")[0] for name in result.stdout.split()}
    assert not loaded & {"numba", "numpy", "PIL", "scipy", "sklearn", "tqdm"}


def test_options_are_the_parameters_of_the_estimators():
    given = {learning_options.PARTS: set(), learning_options.NETWORK: {"layers"}}
    for option in learning_options.OPTIONS:
        for kind in option.of:
            given[kind].add(option.name)
    watching = {"verbose", "callback"}
    parts = FeatureLearner().get_params()
    network = HCN([Layer()]).get_params(deep=False)
    assert given[learning_options.PARTS] == set(parts) - watching
    assert given[learning_options.NETWORK] == set(network) - watching
    assert set(learning_options.LAYER_KEYS) == set(Layer.__dataclass_fields__)
    choices = {option.name: option.choices for option in learning_options.OPTIONS}
    assert choices["engine"] == ENGINE_NAMES
    assert choices["schedule"] == SCHEDULE_NAMES
    assert choices["algorithm"] == tuple(dict.fromkeys([*ALGORITHMS, *NETWORK_ALGORITHMS]))
    assert choices["inference"] == METHODS
    ink = next(a for a in make_parser()[1]["learn"]._actions if a.dest == "ink")
    assert ink.choices == INKS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "hcnet: error: the following arguments are required: COMMAND"),
        (["dance"], "hcnet: error: there is no command 'dance'"),
        (["lern", "x.png"], "there is no command 'lern'; did you mean learn?"),
        (["demo"], "hcnet demo: error: the following arguments are required: --output/-o"),
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


def test_options_may_be_spelled_as_in_python(folder, tmp_path):
    words = ["--feature_size", 7, "--n_init=1", "--max_iter", 1, "--p_W=0.1", "--p_S", 0.01]
    result = inside("learn", folder / "bars0.npy", *words, "-o", tmp_path / "a_b.hcn", "--json")
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["feature_size"] == [7, 7]
    assert told["p_W"] == 0.1
    assert (tmp_path / "a_b.hcn").is_file()


@pytest.mark.parametrize("name", [None, "learn"])
def test_the_word_help_asks_for_help(name):
    words = [] if name is None else [name]
    asked = inside("help", *words)
    assert asked.returncode == 0
    assert asked.stdout == inside(*words, "--help").stdout


def test_info_tells_versions_engines_and_the_machine():
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
    assert one_sentence(result) == (
        "Something that should not happen did (RuntimeError: never mind)."
    )
    monkeypatch.setenv("HCNET_TRACEBACK", "1")
    with pytest.raises(RuntimeError):
        inside("encode", parts[0], folder / "scans")


@pytest.fixture
def path_with_hcnet(tmp_path):
    """A PATH on which hcnet is this one."""
    program = tmp_path / "hcnet"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m hcnet "$@"\n')
    program.chmod(0o755)
    return f"{tmp_path}{os.pathsep}{os.environ['PATH']}"


QUESTIONS = {
    "hcnet le": {"learn"},
    "hcnet learn --sch": {"--schedule"},
    "hcnet learn --engine ": set(ENGINE_NAMES),
    "hcnet learn --ink d": {"dark"},
}


def shell(name, script, path):
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    return subprocess.run(
        [name, "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | {"PATH": path},
    )


@pytest.mark.parametrize("line", QUESTIONS)
def test_bash_completes(path_with_hcnet, line):
    words = line.split(" ")
    script = (
        f'eval "$(hcnet completion bash)"\nCOMP_WORDS=({" ".join(map(repr, words))})\n'
        f"COMP_CWORD={len(words) - 1}\n_hcnet\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
        "complete -p hcnet"
    )
    result = shell("bash", script, path_with_hcnet)
    *found, registered = result.stdout.splitlines()
    assert set(found) == QUESTIONS[line], result.stderr
    assert registered == "complete -o default -F _hcnet hcnet"


@pytest.mark.parametrize("line", QUESTIONS)
def test_fish_completes(path_with_hcnet, line):
    script = f'hcnet completion fish | source\ncomplete --do-complete "{line}"'
    found = shell("fish", script, path_with_hcnet).stdout.splitlines()
    assert {word.split("\t")[0] for word in found} >= QUESTIONS[line]


@pytest.mark.parametrize("line", QUESTIONS)
def test_zsh_completes(path_with_hcnet, line):
    # The completion system works only on a terminal; what it calls is asked here.
    words = line.split(" ")
    script = (
        "compdef() { :; }\ncompadd() { print -l -- ${(P)2}; }\n_files() { :; }\n"
        f'eval "$(hcnet completion zsh)"\nwords=({" ".join(map(repr, words))})\n'
        f"CURRENT={len(words)}\n_hcnet"
    )
    result = shell("zsh", script, path_with_hcnet)
    assert set(result.stdout.split()) == QUESTIONS[line], result.stderr


def test_files_are_left_to_the_shell(path_with_hcnet):
    for words in (["show", ""], ["learn", "x.png", "-o", ""], ["dance", ""]):
        assert inside("completion", "words", "--", *words).stdout == ""


def test_interrupt_is_polite(tmp_path):
    with Terminal("demo", "--output", tmp_path, listening=True) as terminal:
        terminal.wait_for(b"Message passing")
        terminal.process.send_signal(signal.SIGINT)
        _, code = terminal.finish()
    assert code == 130
    assert b"Traceback" not in terminal.said
    assert terminal.said.rstrip().endswith(b"Interrupted.")
    assert list(tmp_path.iterdir()) == []
