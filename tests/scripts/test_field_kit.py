"""Runs run.py of the field kit with test stages, then take_figures.py on the output file."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import run as field
import take_figures
import write_figures
from run import Stage

HEAD = ["mask", "Maskwise, array", *take_figures.KEPT_PEERS]
MASKS = {"versions": "Maskwise 1", "head": HEAD, "rows": [["causal"] + ["1"] * (len(HEAD) - 1)]}
STAMP = {"command": "scripts/field_kit", "commit": "a" * 40, "date": "2026-01-02"}
HALF = "open('build/bench/limits.json', 'w').write('{')"
STAMP |= {"machine": "one", "class": "avx512-some-model"}


def python(code: str) -> tuple[str, ...]:
    return sys.executable, "-c", code


def write_table(name: str, table: dict[str, Any]) -> str:
    return f"open('build/bench/{name}', 'w').write({json.dumps(json.dumps(table))})"


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "field.json"
    stages = [
        Stage("masks", python(write_table("masks.json", MASKS)), 60),
        Stage("stamp", python(write_table("masks.stamp.json", STAMP)), 60),
        Stage("fails", python("print('why'); raise SystemExit(3)"), 60),
        Stage("hangs", python(f"{HALF}; import time; time.sleep(600)"), 60),
        Stage("reads", python(f"print(len(open({str(out)!r}).read()) > 0)"), 60),
    ]
    begin = time.monotonic()
    field.run(tmp_path, stages, 8, out, {})
    assert time.monotonic() - begin < 60
    return out


def test_every_stage_is_written_even_if_it_fails(results: Path) -> None:
    written = json.loads(results.read_text())
    ends = {stage["name"]: stage["end"] for stage in written["stages"]}
    assert ends["masks"] == ends["stamp"] == "passed"
    assert ends["fails"] == "ended with 3"
    assert ends["hangs"] == "cut off after 8 s"
    outputs = {stage["name"]: stage["said"].strip() for stage in written["stages"]}
    assert outputs["fails"] == "why"
    assert outputs["reads"] == "True"  # the file exists before the last stage ends
    assert written["tables"] == {"masks.json": MASKS, "masks.stamp.json": STAMP}
    assert written["facts"]["processors"] >= 1


def test_figures_are_taken_from_the_file(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(take_figures, "ROOT", tmp_path)
    monkeypatch.setattr(write_figures, "write", lambda *_, **__: 0)
    monkeypatch.setattr(sys, "argv", ["take_figures.py", "--field", str(results)])
    assert take_figures.main() == 0
    taken = write_figures.read_result(tmp_path / "docs/figures/avx512-some-model/masks.json")
    assert (taken.commit, taken.rows) == ("a" * 40, MASKS["rows"])
    monkeypatch.setattr(sys, "argv", ["take_figures.py", "--field", str(results), "gradients"])
    assert take_figures.main() == 1  # the kit did not measure gradients
