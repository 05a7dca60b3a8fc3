"""A rule of differences.txt must state the plugin's result, and excuses only that result."""

from pathlib import Path

import compare_transcripts
import pytest


def test_a_rule_that_accepts_any_result_is_refused(tmp_path: Path) -> None:
    rules = tmp_path / "differences.txt"
    rules.write_text("3.2 | wrong/misaligned | execute | - | 0\n")
    assert len(compare_transcripts.read_rules(rules, {"minor": 2})) == 1
    rules.write_text("3.2 | wrong/* | * | - | *\n")
    with pytest.raises(SystemExit, match="accepts any answer"):
        compare_transcripts.read_rules(rules, {"minor": 2})


def test_a_difference_without_a_rule_is_reported() -> None:
    rule = compare_transcripts.Rule("3.2", "wrong/*", "execute", "-", "2", optional=False)
    key = ("wrong/null_element", "execute", 0)
    assert compare_transcripts.compare({}, {key: "2"}, [rule]) == []
    assert compare_transcripts.compare({}, {key: "0"}, [rule]) != []
