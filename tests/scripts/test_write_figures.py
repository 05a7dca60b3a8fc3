"""The check of figures finds planted faults in documents and results."""

import json
import subprocess
from pathlib import Path

import pytest
import take_figures
import write_figures
from table import save_table
from write_figures import EVERY, PICTURES, TABLES, Part, Result, sign, write

CLASS = "avx512-some-model"


def git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=b", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def commit_change(root: Path, path: str, line: str = "changed") -> str:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{file.read_text() if file.exists() else ''}{line}\n")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=change")
    return git(root, "rev-parse", "HEAD")


def test_comments_and_white_space_are_not_code() -> None:
    patch = "--- a/x\n+++ b/x\n-int a; // one\n+  int a;  // two\n-# one\n+# two\n"
    assert write_figures.code_of(patch, "-") == write_figures.code_of(patch, "+") == "inta;"
    assert write_figures.code_of(patch + "+int b;\n", "+") == "inta;intb;"


def put_result(root: Path, name: str, commit: str, cpu_class: str = CLASS, **other: str) -> None:
    facts = {"date": "2026-01-02", "machine": "one", **other}
    result = Result(
        "scripts/x", commit, **facts, versions="y 1", head=["a", "b"], rows=[["c", "1 ms"]]
    )
    path = root / "docs/figures" / cpu_class / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(take_figures.result_text(result))


def put_pictures(root: Path) -> None:
    for path, (table, _) in PICTURES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(sign("<svg>\n", table, root))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a repository whose documents have all tables. The results are of the first commit."""
    monkeypatch.setattr(write_figures, "cpu_class", lambda: CLASS)
    monkeypatch.setattr(write_figures, "PARTS", {})
    git(tmp_path, "init", "--quiet")
    commit = commit_change(tmp_path, "src/kernel/a")
    for document in {name for table in TABLES for name in table.documents}:
        names = [table.name for table in TABLES if document in table.documents]
        parts = [f"<!-- begin {name} -->\n<!-- end {name} -->\nwords\n" for name in names]
        (tmp_path / document).parent.mkdir(exist_ok=True)
        (tmp_path / document).write_text("\n".join(parts))
    for table in EVERY:
        put_result(tmp_path, table.name, commit)
    put_pictures(tmp_path)
    assert write(tmp_path, check=False) == 0
    return tmp_path


def test_written_documents_pass_and_stay_unchanged(root: Path) -> None:
    text = (root / "README.md").read_text()
    assert "one; `scripts/x`, commit" in text and "| c | 1 ms |" in text
    assert write(root, check=True) == 0
    assert write(root, check=False) == 0
    assert (root / "README.md").read_text() == text


def test_a_document_may_show_some_rows_and_columns(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_figures, "PARTS", {"masks": Part(("c",), ("a",))})
    assert write(root, check=False) == 0
    text = (root / "README.md").read_text()
    assert "| b |\n| --- |\n| 1 ms |" in text
    assert f"y 1. [All figures](docs/figures/{CLASS}/masks.json)." in text
    assert "All figures" not in (root / "docs/python.md").read_text()


@pytest.mark.parametrize("part", [Part(("d",)), Part((), ("d",))])
def test_rows_or_columns_that_the_results_lack_are_a_fault(
    root: Path, part: Part, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(write_figures, "PARTS", {"masks": part})
    assert write(root, check=True) == 1
    assert "masks: no " in capsys.readouterr().out


def test_an_edit_by_hand_is_a_fault(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = root / "docs/fusion.md"
    document.write_text(document.read_text().replace("| 1 ms |", "| 0.9 ms |", 1))
    assert write(root, check=True) == 1
    assert "docs/fusion.md: tables are not as scripts" in capsys.readouterr().out


def test_figures_outside_of_markers_are_a_fault(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = root / "docs/python.md"
    document.write_text(document.read_text() + "| a | 12.5 us |\n| b | 3.2 and newer |\n")
    line = len(document.read_text().splitlines()) - 1
    assert write(root, check=True) == 1
    out = capsys.readouterr().out
    assert f"docs/python.md:{line}: a table with figures" in out and "figures: 1 faults" in out


@pytest.mark.parametrize("path", PICTURES)
def test_a_picture_that_differs_from_its_results_is_a_fault(
    root: Path, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = PICTURES[path][0]
    table_name = table.name
    fault = f"{path}: differs from the picture of scripts/draw_picture.py"
    drawn = (root / path).read_text()
    (root / path).write_text(drawn.replace("<svg>", "<svg >"))  # edited by hand
    assert write(root, check=True) == 1 and fault in capsys.readouterr().out
    (root / path).unlink()
    assert write(root, check=True) == 1 and fault in capsys.readouterr().out
    (root / path).write_text(drawn)
    assert write(root, check=True) == 0
    put_result(
        root, table_name, git(root, "rev-parse", "HEAD"), date="2026-03-04"
    )  # changed results
    assert write(root, check=True) == 1 and fault in capsys.readouterr().out
    (root / f"docs/figures/{CLASS}/{table_name}.json").unlink()
    assert write(root, check=True) == 1
    assert (
        f"{path}: {table.documents[0]}: no results for the table '{table_name}'"
        in capsys.readouterr().out
    )


def test_missing_results_are_a_fault(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / f"docs/figures/{CLASS}/python.json").unlink()
    assert write(root, check=True) == 1
    out = capsys.readouterr().out
    assert "docs/python.md: no results for the table 'python': run scripts/bench python" in out


def test_incomplete_results_are_a_fault(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = root / f"docs/figures/{CLASS}/run.json"
    entries = json.loads(path.read_text())
    path.write_text(json.dumps({**entries, "commit": ""}))
    with pytest.raises(write_figures.Fault, match="without commit"):
        write_figures.read_result(path)
    path.write_text(json.dumps({**entries, "rows": [["c"]]}))
    with pytest.raises(write_figures.Fault, match="another number of cells"):
        write_figures.read_result(path)
    assert write(root, check=False) == 1
    assert "another number of cells" in capsys.readouterr().out


def test_results_older_than_30_source_commits_are_a_fault(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(30):
        commit_change(root, "src/plan/b")
        commit_change(root, "src/graph/c")  # not a source of a result
        commit_change(root, "src/plan/b", "    // a comment")
    assert write(root, check=True) == 0
    newest = commit_change(root, "src/exec/d")
    assert write(root, check=True) == 1
    out = capsys.readouterr().out
    assert f"docs/figures/{CLASS}/run.json: 31 commits to its sources" in out
    for table in EVERY:
        put_result(root, table.name, newest)
    put_pictures(root)
    assert write(root, check=False) == write(root, check=True) == 0


def test_an_unknown_commit_is_a_fault(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put_result(root, "run", "0123456789" * 4)
    write(root, check=False)
    assert write(root, check=True) == 1
    assert "commit 012345678 is not in the history" in capsys.readouterr().out


def test_a_clone_without_history_passes_with_a_note(
    root: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    commit_change(root, "src/plan/b")
    clone = tmp_path_factory.mktemp("clone") / "shallow"
    git(root, "clone", "--quiet", "--depth=1", f"file://{root}", str(clone))
    assert write(clone, check=True) == 0
    assert f"the age of {len(EVERY)} results is not known" in capsys.readouterr().out


def test_documents_show_every_class_and_readme_the_newest_results(root: Path) -> None:
    commit = git(root, "rev-parse", "HEAD")
    for name in ("run", "python"):
        put_result(root, name, commit, "avx2-other", date="2026-03-04", machine="two")
    assert write(root, check=False) == 0
    text = (root / "docs/python.md").read_text()
    assert "\ntwo; `scripts/x`" in text and "\none; `scripts/x`" in text
    table = (root / "README.md").read_text().partition("<!-- end run -->")[0]
    assert "\ntwo; `scripts/x`" in table and "\none; `scripts/x`" not in table


def write_stamp(bench: Path, suite: str, commit: str = "c" * 40) -> None:
    bench.mkdir(exist_ok=True)
    facts = {"command": "scripts/bench", "date": "2026-01-02", "machine": "one", "class": CLASS}
    (bench / f"{suite}.stamp.json").write_text(json.dumps({**facts, "commit": commit}))


def taken(name: str, bench: Path, root: Path) -> Result:
    return write_figures.read_result(take_figures.take(name, bench, root))


def test_the_table_of_run_has_the_shown_cases(tmp_path: Path) -> None:
    bench = tmp_path / "bench"
    write_stamp(bench, "run-perf")
    rows = [[*key, "PASSED", "2.0", "1.0", "2.0", "9"] for key in take_figures.SHOWN]
    rows[-1][3:6] = ["aborts", "-", "-"]
    table = {"library": "oneDNN 3, Maskwise in front", "head": [], "rows": rows}
    (bench / "run-perf.json").write_text(json.dumps(table))
    result = taken("run", bench, tmp_path)
    assert result.rows[0][1:] == ["f32", "2 ms", "1 ms", "2 times"]
    assert result.rows[-1][1:] == ["f32", "ends the process", "`invalid_shape`", ""]
    (bench / "run-perf.json").write_text(json.dumps({**table, "rows": rows[1:]}))
    with pytest.raises(write_figures.Fault, match="without"):
        take_figures.take("run", bench, tmp_path)


def test_the_picture_shows_masks_by_their_share_of_tiles(tmp_path: Path) -> None:
    head = ["mask", "Maskwise, array", "SDPA", "FlexAttention"]
    rows = [["causal", "1", "2", "3"], ["5 % of the tiles", "4", "5", "6"]]
    save_table(tmp_path, "masks", "PyTorch 1", head, rows)
    write_stamp(tmp_path, "masks")
    result = taken("kept", tmp_path, tmp_path)
    assert result.head == ["kept %", "Maskwise", "SDPA", "FlexAttention"]
    assert result.rows == [["5", "4", "5", "6"]]
    save_table(tmp_path, "masks", "PyTorch 1", head, rows[:1])
    write_stamp(tmp_path, "masks")
    with pytest.raises(write_figures.Fault, match="no row"):
        take_figures.take("kept", tmp_path, tmp_path)


def test_uncommitted_changes_and_missing_results_are_refused(tmp_path: Path) -> None:
    with pytest.raises(write_figures.Fault, match="not measured"):
        take_figures.take("python", tmp_path, tmp_path)
    write_stamp(tmp_path, "python", commit="c" * 40 + "+")
    with pytest.raises(write_figures.Fault, match="uncommitted changes"):
        take_figures.take("python", tmp_path, tmp_path)
