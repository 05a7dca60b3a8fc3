"""guard.py reports changed instruction counts, for instruction sets that the CPU has."""

from pathlib import Path

import guard
import pytest


def compared(tmp_path: Path, printed: str, recorded: str, *options: str) -> int:
    program, file = tmp_path / "program", tmp_path / "instructions.txt"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{printed}END\n")
    program.chmod(0o755)
    file.write_text(recorded)
    return guard.main([*options, "instructions", str(program), str(file)])


def test_counts_within_three_percent_pass(tmp_path: Path) -> None:
    assert compared(tmp_path, "avx2 a: 1020\n", "avx2 a: 1000\n") == 0
    assert compared(tmp_path, "avx2 a: 1040\n", "avx2 a: 1000\n") == 1


def test_a_changed_or_missing_kernel_is_reported(tmp_path: Path) -> None:
    recorded = "avx2 a: 1000\navx512 a: 500\n"
    assert compared(tmp_path, "avx2 a: 1000\navx512 a: 600\n", recorded) == 1
    assert compared(tmp_path, "avx2 a: 1000\n", recorded) == 1


def test_a_missing_instruction_set_is_neither_compared_nor_recorded(tmp_path: Path) -> None:
    recorded = "avx2 a: 1000\navx512 a: 500\n"
    missing = "avx2 a: 1000\n# avx512 is not supported\n"
    assert compared(tmp_path, missing, recorded) == 0
    assert compared(tmp_path, "# avx2 is not supported\n# avx512 is not supported\n", recorded) == 1
    with pytest.raises(SystemExit, match="no avx512"):
        compared(tmp_path, missing, recorded, "--record")
