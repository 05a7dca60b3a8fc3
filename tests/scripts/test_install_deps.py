"""An installation succeeds as a whole or changes nothing, and its messages name the fault."""

import tempfile
from pathlib import Path

import install_deps
import pytest
from install_deps import Failure, Pins


@pytest.fixture
def deps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(install_deps, "DEPS", tmp_path / ".deps")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path / ".deps"


def pins(text: str = "a==1\n") -> Pins:
    """Parses `text` as the contents of lane.txt."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "lane.txt")
        path.write_text(text)
        return Pins(path)


def build(tree: Path, used: Pins) -> None:
    (tree / "content").write_text(used.text)


def fail_to_build(tree: Path, used: Pins) -> None:
    build(tree, used)
    raise Failure("the download failed")


def names(deps: Path) -> set[str]:
    return {path.name for path in deps.iterdir()} - {".lock"}


def test_a_failure_leaves_the_old_tree(deps: Path) -> None:
    install_deps.install("lane", deps / "lane", pins(), build)
    with pytest.raises(Failure, match="lane: the download failed; nothing is left half done"):
        install_deps.install("lane", deps / "lane", pins("a==2\n"), fail_to_build)
    assert (deps / "lane/content").read_text() == "a==1\n"
    assert names(deps) == {"lane"}


def test_leftovers_of_a_killed_run_are_removed(deps: Path) -> None:
    (deps / ".partial-killed/tree").mkdir(parents=True)
    install_deps.install("lane", deps / "lane", pins(), build)
    assert names(deps) == {"lane"}


MOVING = "suite unstable\nat-least libdnnl-dev 3.8\nbelow libdnnl-dev 3.15\nlibdnnl-dev\n"


def test_an_unpinned_lane_may_be_missing(
    deps: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(install_deps, "build_lane", fail_to_build)
    install_deps.install_lane(pins(MOVING), wanted_by_name=False)
    last = capsys.readouterr().err.splitlines()[-1]
    assert "oneDNN lane lane: the download failed" in last
    assert "skipped" in last
    assert names(deps) == set()


def test_a_pinned_lane_or_a_named_lane_must_not_be_missing(
    deps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install_deps, "build_lane", fail_to_build)
    with pytest.raises(Failure, match="the download failed"):
        install_deps.install_lane(pins(MOVING), wanted_by_name=True)
    with pytest.raises(Failure, match="the download failed"):
        install_deps.install_lane(pins(), wanted_by_name=False)


def fetched(folder: Path, *versions: str) -> Path:
    for version in versions:
        (folder / f"libdnnl-dev_{version}_amd64.deb").touch()
    return folder


@pytest.mark.parametrize(
    ("versions", "version"), [(["3.7.2+ds-2"], r"3\.7\.2"), (["2.10"], r"2\.10"), ([], "0")]
)
def test_a_version_that_is_too_old_is_named(
    tmp_path: Path, versions: list[str], version: str
) -> None:
    with pytest.raises(Failure, match=rf"libdnnl-dev 3\.8 or newer, the mirror has {version}"):
        install_deps.check_versions(fetched(tmp_path, *versions), pins(MOVING))


def test_a_release_must_have_the_expected_version(tmp_path: Path) -> None:
    wanted = pins("expect libdnnl-dev 3.7.2\n")
    with pytest.raises(Failure, match=r"expected libdnnl-dev 3\.7\.2, the mirror has 3\.7\.3"):
        install_deps.check_versions(fetched(tmp_path, "3.7.3-1"), wanted)
