"""where and Select at memory bandwidth, and attention that skips masked tiles, on CPUs.

    import maskwise
    y = maskwise.where(mask, x, 0.0)                # numpy.where
    maskwise.where(mask, x, 0.0, out=y)             # into an existing array
    z = maskwise.attention(q, k, v, mask)           # torch's scaled_dot_product_attention

`explain` and `explain_attention` describe how a call would run. `select` follows the strict rules
of oneDNN, OpenVINO or ONNX. The integrations with other libraries are `maskwise.torch`,
`maskwise.transformers`, `maskwise.flash_attn`, `maskwise.onnxruntime`, `maskwise.openvino` and
`maskwise.onednn`. `python -m maskwise` prints which integrations work on this machine.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

_broken = ""  # the package's import error, which `python -m maskwise` prints
try:
    for needed in ("numpy", "maskwise._core"):  # numpy first, so that the error names numpy
        import_module(needed)
    from maskwise._attention import attention, explain_attention, packed_attention
    from maskwise._core import explain, instruction_set, version, where
    from maskwise._select import select
except ImportError as failure:
    _broken = str(failure)
    if sys.argv[:1] != ["-m"] or "maskwise" not in sys.orig_argv:
        reason = f"maskwise cannot be loaded: {_broken} (`python -m maskwise` says more)"
        raise ImportError(reason, name="maskwise") from failure

__all__ = [
    "Mask",
    "attention",
    "explain",
    "explain_attention",
    "instruction_set",
    "packed_attention",
    "select",
    "where",
]
__version__ = "" if _broken else version()

if TYPE_CHECKING:
    from maskwise._mask import Mask


def __getattr__(name: str) -> Any:
    """Imports Mask at its first use, because most programs do not need it."""
    if name != "Mask":
        raise AttributeError(f"module 'maskwise' has no attribute {name!r}")
    from maskwise._mask import Mask

    globals()["Mask"] = Mask
    return Mask


def _library(name: str, kind: str) -> str:
    library = os.path.join(os.path.dirname(__file__), "lib", name)  # noqa: PTH118, PTH120
    if not os.path.exists(library):  # noqa: PTH110
        raise FileNotFoundError(f"the {kind} is not in this installation: no {library}")
    return library
