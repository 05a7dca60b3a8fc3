"""Runs the code blocks of a page as a reader would, in the environment of this Python.

usage: page.py CONTEXT TYPE PAGE...

CONTEXT names a file in this folder, context_CONTEXT.py. The function `names` in this file returns
the names that the blocks use but do not define. `check` tests the results. All python blocks of a
page run as one program; `sh` blocks run in bash. A block is skipped if this environment lacks a
package that the block needs, if the block needs another context's framework, or if the block
contains a key of OTHERS.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# A block with one of these texts is skipped in every environment. The values are the reasons.
OTHERS = {"scripts/": "needs a clone; CI runs it"}
# Maskwise's modules that need another package.
WANTED = {
    "maskwise.torch": "torch",
    "maskwise.flash_attn": "torch",
    "maskwise.transformers": "transformers",
    "maskwise.onnxruntime": "onnxruntime",
    "maskwise.openvino": "openvino",
}
# On README, these contexts use the check of another context.
BASES = {"onnxruntime": "numpy", "openvino": "numpy", "transformers": "torch"}


def blocks_of(page: str) -> list[tuple[int, str, str]]:
    """Returns the first line's number, the language and the text of each block."""
    text = (ROOT / page).read_text()
    blocks = re.finditer(r"^```(python|sh)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [(text[: block.start()].count("\n") + 2, block[1], block[2]) for block in blocks]


def is_skipped(block: str, context: str) -> bool:
    wanted = {WANTED[word] for word in re.findall(r"maskwise\.\w+", block) if word in WANTED}
    missing = [name for name in wanted if importlib.util.find_spec(name) is None]
    is_other = any(word in block for word in OTHERS)
    # A context creates only the models of its framework.
    return is_other or bool(missing) or bool(wanted - {"torch", context})


def run_block(page: str, line: int, language: str, block: str, names: dict[str, Any]) -> None:
    where = f"{page}:{line}"
    if language == "sh":
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block], text=True, capture_output=True, check=False
        )
        if ran.returncode != 0:
            sys.exit(f"{where} failed:\n{ran.stdout}{ran.stderr}")
        return
    # Adds blank lines before the block, so that a traceback has the page's line numbers.
    code = compile("\n" * (line - 1) + block, str(ROOT / page), "exec")
    try:
        exec(code, names)
    except Exception as failure:
        failure.add_note(f"in the block at {where}")
        raise


def run_page(page: str, context: str, kind: str) -> int:
    module = importlib.import_module(f"context_{context}")
    names: dict[str, Any] = module.names(kind)
    count = 0
    for line, language, block in blocks_of(page):
        if is_skipped(block, context):
            continue
        run_block(page, line, language, block, names)
        count += 1
    checks = BASES.get(context, context) if page == "README.md" else context
    importlib.import_module(f"context_{checks}").check(names)
    return count


def versions(context: str) -> str:
    packages = dict.fromkeys((context, "torch", "numpy"))
    lines = []
    for name in packages:
        try:
            lines.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return ", ".join(lines)


def main() -> None:
    context, kind, *pages = sys.argv[1:]
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for page in pages:
        count = run_page(page, context, kind)
        if not count:
            sys.exit(f"{page}: no block was run")
        print(f"  {page}: {count} blocks in {kind}: {versions(context)}", flush=True)


if __name__ == "__main__":
    main()
