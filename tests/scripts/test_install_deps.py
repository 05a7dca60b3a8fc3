"""Installing is all or nothing: stamps, leftovers of killed runs, and messages of failed ones."""

import tempfile
from pathlib import Path

import install_deps
import pytest
from hypothesis import given
from hypothesis import strategies as st
from install_deps import Failure, Pins


@pytest.fixture
def deps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(install_deps, "DEPS", tmp_path / ".deps")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path / ".deps"


def pins(root: Path, text: str = "a==1\n") -> Pins:
    path = root / "lane.txt"
    path.write_text(text)
    return Pins(path)


def build(tree: Path, used: Pins) -> None:
    (tree / "content").write_text(used.text)


def broken(tree: Path, used: Pins) -> None:
    build(tree, used)
    raise Failure("the download failed")


def names(deps: Path) -> set[str]:
    return {path.name for path in deps.iterdir()} - {".lock"}


def test_installs_once(deps: Path, tmp_path: Path) -> None:
    calls = []

    def counted(tree: Path, used: Pins) -> None:
        calls.append(tree)
        build(tree, used)

    for _ in range(2):
        install_deps.install("lane", deps / "lane", pins(tmp_path), counted)
    assert len(calls) == 1
    assert names(deps) == {"lane"}


def test_new_pins_replace_the_old_tree(deps: Path, tmp_path: Path) -> None:
    install_deps.install("lane", deps / "lane", pins(tmp_path), build)
    install_deps.install("lane", deps / "lane", pins(tmp_path, "a==2\n"), build)
    assert (deps / "lane/content").read_text() == "a==2\n"
    assert names(deps) == {"lane"}


def test_a_failure_leaves_the_old_tree(deps: Path, tmp_path: Path) -> None:
    install_deps.install("lane", deps / "lane", pins(tmp_path), build)
    with pytest.raises(Failure, match="lane: the download failed; nothing is left half done"):
        install_deps.install("lane", deps / "lane", pins(tmp_path, "a==2\n"), broken)
    assert (deps / "lane/content").read_text() == "a==1\n"
    assert names(deps) == {"lane"}


def test_what_a_killed_run_left_is_cleared(deps: Path, tmp_path: Path) -> None:
    (deps / ".partial-killed/tree").mkdir(parents=True)
    install_deps.install("lane", deps / "lane", pins(tmp_path), build)
    assert names(deps) == {"lane"}


def test_an_unknown_lane_names_the_known_ones() -> None:
    with pytest.raises(Failure, match=r"no lane '9\.9'; there are 3\.13, 3\.2, 3\.7"):
        install_deps.lane_pins(["9.9"])


def test_every_wheel_is_pinned() -> None:
    for path in [
        *install_deps.ROOT.glob("scripts/lanes/*.txt"),
        install_deps.ROOT / "scripts/tools.txt",
    ]:
        read = Pins(path)
        assert read.items
        assert "about" in read.size()
        assert read.suite or all("==" in item for item in read.items)


def test_the_telling_line_is_the_networks_fault() -> None:
    output = (
        "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError("
        "'<x object at 0x7f>: Failed to establish a new connection: [Errno 111] Connection "
        "refused')': /simple/tbb/\nERROR: No matching distribution found for tbb==1\n"
    )
    told = install_deps.telling_line(output)
    assert told == "Failed to establish a new connection: [Errno 111] Connection refused"


@given(st.text())
def test_a_failed_command_always_tells_something(output: str) -> None:
    assert install_deps.telling_line(output)


@given(st.lists(st.text(alphabet="ab=1", min_size=1), max_size=4))
def test_the_stamp_follows_the_pins_and_not_the_comments(items: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        stamp = pins(Path(folder), "\n".join(items)).stamp()
        assert stamp == pins(Path(folder), "# why\n\n" + "\n".join(items) + "  # and why").stamp()
        assert stamp != pins(Path(folder), "\n".join([*items, "more"])).stamp()
