"""What a file is written over: never anything but a regular file, whose mode and owner stay."""

import os
import signal
import stat
import subprocess
import sys
import time

import pytest

from hcnet.atomic_files import MOST_NAME, open_atomically, remove_unfinished, write_atomically


def save(path, content=b"new", overwrite=True):
    return write_atomically(path, lambda file: file.write(content), overwrite)


def kind(path):
    return stat.S_IFMT(os.lstat(path).st_mode)


def make_device(path):
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("Only the administrator can make a device.")


SPECIAL = {"pipe": os.mkfifo, "device": make_device}


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("what", SPECIAL)
@pytest.mark.parametrize("overwrite", [False, True])
def test_what_is_no_regular_file_is_never_replaced(tmp_path, what, linked, overwrite):
    SPECIAL[what](tmp_path / what)
    before, path = kind(tmp_path / what), tmp_path / what
    if linked:
        path = tmp_path / "link"
        path.symlink_to(what)
    with pytest.raises(OSError, match="never replaced; name a regular file"):
        save(path, overwrite=overwrite)
    assert kind(tmp_path / what) == before
    assert len(list(tmp_path.iterdir())) == 1 + linked


def test_what_becomes_a_pipe_meanwhile_stays_one(tmp_path):
    path = tmp_path / "file"
    with pytest.raises(OSError, match="never replaced"):
        write_atomically(path, lambda file: os.mkfifo(path), overwrite=True)
    assert kind(path) == stat.S_IFIFO
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("there", [False, True])
def test_a_link_stays_and_needs_permission(tmp_path, there):
    (tmp_path / "far").mkdir()
    path, goal = tmp_path / "link", tmp_path / "far" / "goal"
    path.symlink_to("far/goal")
    if there:
        goal.write_bytes(b"old")
    with pytest.raises(FileExistsError, match="exists already"):
        save(path, overwrite=False)
    assert goal.exists() == there
    assert save(path) == path
    assert str(path.readlink()) == "far/goal"
    assert goal.read_bytes() == b"new"
    assert sorted(file.name for file in tmp_path.rglob("*")) == ["far", "goal", "link"]


def test_links_that_lead_nowhere_are_said_so(tmp_path):
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(OSError, match="symbolic links"):
        save(tmp_path / "circle")
    (tmp_path / "away").symlink_to("no-folder/file")
    with pytest.raises(FileNotFoundError, match="is not a folder"):
        save(tmp_path / "away")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o664, 0o755, 0o400])
def test_the_mode_of_a_file_stays_from_the_first_byte(tmp_path, mode):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(mode)
    with open_atomically(path, overwrite=True) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == mode
        file.write(b"new")
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_bytes() == b"new"


@pytest.mark.skipif(os.geteuid() != 0, reason="Only the administrator gives files to others.")
def test_the_owner_of_a_file_stays(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    os.chown(path, 12345, 23456)
    path.chmod(0o4750)
    save(path)
    found = path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (12345, 23456, 0o4750)


def test_a_new_file_has_the_mode_of_other_new_files(tmp_path):
    (tmp_path / "other").write_bytes(b"")
    assert save(tmp_path / "file").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_names_as_long_as_the_system_takes_work_and_longer_ones_fail_at_once(tmp_path):
    no_text = os.fsdecode(b"\xff\xe9")
    for name in ("a" * 245, "a" * MOST_NAME, "é" * (MOST_NAME // 2), "\u2028", no_text):
        assert save(tmp_path / name).read_bytes() == b"new"
        save(tmp_path / name, b"newer")
    assert len(list(tmp_path.iterdir())) == 5
    with pytest.raises(ValueError, match="too long"), open_atomically(tmp_path / ("a" * 256), True):
        pytest.fail("the work had begun")


WRITER = """
import sys, time
from hcnet.atomic_files import open_atomically
with open_atomically(sys.argv[1], overwrite=True) as file:
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("name", ["file", "a" * 250])
def test_what_a_killed_process_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path, name):
    path = tmp_path / name
    command = [sys.executable, "-c", WRITER, str(path)]
    writers = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for writer in writers:
            assert writer.stdout.readline() == b"writing\n"
        mine = tmp_path / f"{name[:200]}.part"  # of somebody else
        mine.write_bytes(b"")
        assert len(list(tmp_path.iterdir())) == 3
        writers[0].send_signal(signal.SIGKILL)
        writers[0].wait()
        began = time.perf_counter()
        save(path)
        assert time.perf_counter() - began < 10  # nobody waits for the other
        assert len(list(tmp_path.iterdir())) == 3  # the file, the living one's, and mine
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
            writer.stdout.close()
    remove_unfinished(path)
    assert sorted(tmp_path.iterdir()) == sorted([path, mine])
