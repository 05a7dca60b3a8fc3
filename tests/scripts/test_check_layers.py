"""The layer check finds planted violations of scripts/layers.txt, and passes allowed includes."""

from pathlib import Path

import check_layers
import pytest

TABLE = check_layers.read_table(check_layers.ROOT / "scripts/layers.txt")


def tree(root: Path, path: str, text: str) -> list[str]:
    for folder in TABLE.allowed:
        (root / ("" if "/" in folder else "src") / folder).mkdir(parents=True, exist_ok=True)
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)
    return check_layers.check(root, TABLE)


@pytest.mark.parametrize(
    ("path", "include"),
    [
        ("src/tensor/a.hpp", '"plan/select_plan.hpp"'),
        ("src/kernel/a.hpp", '"tensor/dims.hpp"'),
        ("src/plan/a.cpp", '"graph/match.hpp"'),
        ("src/plan/a.cpp", "<tbb/parallel_for.h>"),
        ("src/graph/a.cpp", "<oneapi/dnnl/dnnl_graph.h>"),
        ("src/base/a.cpp", "<dlfcn.h>"),
        ("src/exec/a.cpp", '"onednn/library/guard.hpp"'),
        ("src/onednn/library/a.cpp", '"onednn/record/op_record.hpp"'),
        ("src/onednn/record/a.cpp", '"onednn/partition/executable.hpp"'),
        ("src/onednn/partition/a.cpp", '"onednn/hooks/a.hpp"'),
        ("tests/support/oracle.hpp", '"plan/select_plan.hpp"'),
        ("tests/contract/a.cpp", '"base/error.hpp"'),
        ("tests/contract/a.cpp", '"onednn/library/guard.hpp"'),
    ],
)
def test_finds_a_planted_include(tmp_path: Path, path: str, include: str) -> None:
    faults = tree(tmp_path, path, f"#pragma once\n#include {include}\n")
    assert len(faults) == 1
    assert faults[0].startswith(f"{path}:2:")
    assert include.strip('<>"') in faults[0]


@pytest.mark.parametrize(
    ("path", "include"),
    [
        ("src/exec/a.cpp", "<tbb/parallel_for.h>"),
        ("src/exec/a.cpp", '"tensor/dims.hpp"'),
        ("src/graph/a.cpp", '"base/error.hpp"'),
        ("src/onednn/a.cpp", "<dlfcn.h>"),
        ("src/onednn/library/a.cpp", "<dlfcn.h>"),
        ("src/onednn/hooks/a.cpp", '"graph/match.hpp"'),
        ("tests/contract/a.cpp", "<oneapi/dnnl/dnnl_graph.hpp>"),
        ("tests/contract/a.cpp", '"onednn/library/functions.inc"'),
    ],
)
def test_allows_what_the_table_allows(tmp_path: Path, path: str, include: str) -> None:
    assert tree(tmp_path, path, f"#include {include}\n") == []


def test_a_folder_without_a_row_is_a_fault(tmp_path: Path) -> None:
    faults = tree(tmp_path, "src/gpu/a.cpp", "")
    assert faults == ["src/gpu: not in scripts/layers.txt"]


def test_finds_an_include_cycle(tmp_path: Path) -> None:
    tree(tmp_path, "src/plan/a.cpp", '#include "plan/a.hpp"\n#include "plan/b.hpp"\n')
    faults = tree(tmp_path, "src/plan/b.hpp", '#include "plan/a.hpp"\n')
    assert len(faults) == 1
    assert faults[0].startswith("src: units include each other in a cycle: plan/")
