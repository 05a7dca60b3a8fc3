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


def pins(text: str = "a==1\n") -> Pins:
    """Of a file lane.txt, which is gone when it was read."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "lane.txt")
        path.write_text(text)
        return Pins(path)


def build(tree: Path, used: Pins) -> None:
    (tree / "content").write_text(used.text)


def broken(tree: Path, used: Pins) -> None:
    build(tree, used)
    raise Failure("the download failed")


def names(deps: Path) -> set[str]:
    return {path.name for path in deps.iterdir()} - {".lock"}


def test_installs_once(deps: Path) -> None:
    calls = []

    def counted(tree: Path, used: Pins) -> None:
        calls.append(tree)
        build(tree, used)

    for _ in range(2):
        install_deps.install("lane", deps / "lane", pins(), counted)
    assert len(calls) == 1
    assert names(deps) == {"lane"}


def test_new_pins_replace_the_old_tree(deps: Path) -> None:
    install_deps.install("lane", deps / "lane", pins(), build)
    install_deps.install("lane", deps / "lane", pins("a==2\n"), build)
    assert (deps / "lane/content").read_text() == "a==2\n"
    assert names(deps) == {"lane"}


def test_a_failure_leaves_the_old_tree(deps: Path) -> None:
    install_deps.install("lane", deps / "lane", pins(), build)
    with pytest.raises(Failure, match="lane: the download failed; nothing is left half done"):
        install_deps.install("lane", deps / "lane", pins("a==2\n"), broken)
    assert (deps / "lane/content").read_text() == "a==1\n"
    assert names(deps) == {"lane"}


def test_what_a_killed_run_left_is_cleared(deps: Path) -> None:
    (deps / ".partial-killed/tree").mkdir(parents=True)
    install_deps.install("lane", deps / "lane", pins(), build)
    assert names(deps) == {"lane"}


def test_an_unknown_lane_names_the_known_ones() -> None:
    with pytest.raises(Failure, match=r"no lane '9\.9'; there are 3\.13, 3\.2, 3\.7, unstable"):
        install_deps.lane_pins(["9.9"])


MOVING = "suite unstable\nat-least libdnnl-dev 3.8\nbelow libdnnl-dev 3.15\nlibdnnl-dev\n"


def test_a_lane_that_moves_may_be_missing(
    deps: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(install_deps, "build_lane", broken)
    install_deps.install_lane(pins(MOVING), wanted_by_name=False)
    last = capsys.readouterr().err.splitlines()[-1]
    assert "oneDNN lane lane: the download failed" in last
    assert "skipped" in last
    assert names(deps) == set()


def test_only_a_lane_that_moves_may_be_missing_and_not_when_named(
    deps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install_deps, "build_lane", broken)
    with pytest.raises(Failure, match="the download failed"):
        install_deps.install_lane(pins(MOVING), wanted_by_name=True)
    with pytest.raises(Failure, match="the download failed"):
        install_deps.install_lane(pins(), wanted_by_name=False)


def fetched(folder: Path, *versions: str) -> Path:
    for version in versions:
        (folder / f"libdnnl-dev_{version}_amd64.deb").touch()
    return folder


@pytest.mark.parametrize("version", ["3.8", "3.12.1+ds-3", "3.14.2-1"])
def test_a_moving_version_is_told(
    tmp_path: Path, version: str, capsys: pytest.CaptureFixture[str]
) -> None:
    install_deps.check_versions(fetched(tmp_path, version), pins(MOVING))
    assert f"libdnnl-dev of unstable is {version}" in capsys.readouterr().err


def test_a_version_that_the_tests_do_not_know_is_named(tmp_path: Path) -> None:
    with pytest.raises(Failure, match=r"libdnnl-dev below 3\.15, the mirror has 3\.15\+ds-1"):
        install_deps.check_versions(fetched(tmp_path, "3.15+ds-1"), pins(MOVING))


@pytest.mark.parametrize(
    ("versions", "found"), [(["3.7.2+ds-2"], r"3\.7\.2"), (["2.10"], r"2\.10"), ([], "0")]
)
def test_a_version_that_is_too_old_is_named(
    tmp_path: Path, versions: list[str], found: str
) -> None:
    with pytest.raises(Failure, match=rf"libdnnl-dev 3\.8 or newer, the mirror has {found}"):
        install_deps.check_versions(fetched(tmp_path, *versions), pins(MOVING))


def test_a_release_of_one_version_is_held_to_it(tmp_path: Path) -> None:
    wanted = pins("expect libdnnl-dev 3.7.2\n")
    with pytest.raises(Failure, match=r"expected libdnnl-dev 3\.7\.2, the mirror has 3\.7\.3"):
        install_deps.check_versions(fetched(tmp_path, "3.7.3-1"), wanted)


def package_index(tree: Path, output: str, status: int = 0) -> Path:
    """A Python with a pip that answers so, and keeps the questions."""
    (tree / "bin").mkdir(parents=True)
    asked = tree / "asked"
    python = tree / "bin/python"
    python.write_text(f"#!/bin/sh\necho \"$*\" >>'{asked}'\necho '{output}'\nexit {status}\n")
    python.chmod(0o755)
    return asked


@pytest.mark.parametrize(
    ("output", "status", "said"),
    [
        (
            "a (1.32.0)\nAvailable versions: 1.32.0, 1.4.0",
            0,
            "a 1.32.0 is out; lane.txt pins 1.4.0",
        ),
        ("a (1.4.0)\nAvailable versions: 1.4.0", 0, ""),
        ("a (1.3.9)", 0, ""),
        ("ERROR: No matching distribution found for a", 1, ""),
    ],
    ids=["newer", "same", "older", "no network"],
)
def test_a_newer_release_is_told(
    output: str,
    status: int,
    said: str,
    deps: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = package_index(deps / "python", output, status)
    install_deps.say_newer_release("a", pins("aa==2\na==1.4.0\n"))
    assert asked.read_text().endswith(" index versions a\n")
    assert capsys.readouterr().err == (f"scripts/setup: {said}\n" if said else "")


def test_the_index_is_asked_only_after_an_installation(
    deps: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def environment(tree: Path, used: Pins) -> None:
        package_index(tree, "onnxruntime (9999.0)")

    monkeypatch.setattr(install_deps, "build_environment", environment)
    monkeypatch.setattr(install_deps, "build_from_debian", build)
    install_deps.install_for_python()
    said = [line for line in capsys.readouterr().err.splitlines() if " is out" in line]
    assert len(said) == 1
    assert said[0].startswith("scripts/setup: onnxruntime 9999.0 is out; python.txt pins 1.")
    install_deps.install_for_python()
    assert capsys.readouterr().err == ""


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
    stamp = pins("\n".join(items)).stamp()
    assert stamp == pins("# why\n\n" + "\n".join(items) + "  # and why").stamp()
    assert stamp != pins("\n".join([*items, "more"])).stamp()
