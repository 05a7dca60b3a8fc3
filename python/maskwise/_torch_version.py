"""Refuses a torch that is too old, before anything of it is imported that may be missing."""

# torch need not be there where the package is checked.
# mypy: disable-error-code="import-not-found,unused-ignore"

from __future__ import annotations

import torch

OLDEST = (2, 8)
if tuple(int(part) for part in torch.__version__.split(".")[:2]) < OLDEST:
    needed = ".".join(map(str, OLDEST))
    raise ImportError(f"Maskwise needs PyTorch {needed} or newer, this is {torch.__version__}")

# Whether torch.compile reads a Mask and the variables of a mask function.
READS_MASKS = torch.__version__ >= (2, 15)
