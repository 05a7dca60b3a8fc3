"""Differences between torch versions. Raises ImportError if torch is too old."""

# mypy may check the package without torch.
# mypy: disable-error-code="import-not-found,unused-ignore"

from __future__ import annotations

from hashlib import sha256

import torch

from maskwise._core import version

OLDEST = (2, 8)
if tuple(int(part) for part in torch.__version__.split(".")[:2]) < OLDEST:
    needed = ".".join(map(str, OLDEST))
    raise ImportError(f"Maskwise needs PyTorch {needed} or newer, this is {torch.__version__}")

# Whether torch.compile can trace a Mask, and the variables that a mask function captures.
READS_MASKS = torch.__version__ >= (2, 15)


def add_to_cache_keys(schema: str) -> None:
    """Adds Maskwise's version and its operator's schema to torch's keys of compiled graphs on disk,
    because torch's keys contain neither.
    """
    config = torch.compiler.config
    mark = f"maskwise {version()} {sha256(schema.encode()).hexdigest()[:16]}"
    config.cache_key_tag = f"{config.cache_key_tag} {mark}".lstrip()
