"""Checks that a model supports "maskwise" or "maskwise_flash": transformers must allow "sdpa" or
"flash_attention_2" for the model. Adds continuous batching."""

# mypy may check the package without torch and transformers.
# mypy: disable-error-code="import-not-found,misc,no-any-return,unused-ignore"

from __future__ import annotations

import sys
from functools import wraps
from typing import Any

from transformers import PreTrainedModel
from transformers import __version__ as VERSION
from transformers import modeling_flash_attention_utils as flash_utils
from transformers.utils import logging

from maskwise.flash_attn import flash_attn_func, flash_attn_varlen_func, flash_attn_with_kvcache

NAME, FLASH_NAME = "maskwise", "maskwise_flash"
# transformers' methods that check a model for flash attention: since 5.0, and before 5.0.
FLASH_CHECKS = ("_flash_attn_can_dispatch", "_flash_attn_2_can_dispatch")

log = logging.get_logger(__name__)


def _require_flash(model: Any) -> None:
    """Raises transformers' error if the model does not support flash attention. Else skips
    transformers' check, which requires the package flash_attn."""
    if model._supports_flash_attn or getattr(model, "_supports_flash_attn_2", False):
        return
    new, old = (getattr(model, name, None) for name in FLASH_CHECKS)
    if new is not None:
        new(2)
    elif old is not None:
        old()


def _require_no_table(model: Any, name: str) -> None:
    """Raises ValueError if the model's module has a table of attention classes without `name`."""
    for table in vars(sys.modules[type(model).__module__]).values():
        is_table = isinstance(table, dict) and "eager" in table and name not in table
        if is_table and all(map(callable, table.values())):
            raise ValueError(
                f"{type(model).__name__} has attention of its own for {', '.join(table)} and takes "
                f'no attn_implementation="{name}"; maskwise.torch.install() accelerates its "sdpa"'
            )


def _require_support(model: Any, name: str, is_built: bool) -> None:
    """Raises ValueError if the model would lose its mask."""
    if name == FLASH_NAME:
        _require_flash(model)
    elif not (model._supports_flex_attn and model._supports_attention_backend):
        # A model that supports flex attention and attention backends, but not "sdpa", needs soft
        # caps or sinks, which SDPA lacks.
        model._sdpa_can_dispatch(True)
    if not is_built:
        _require_no_table(model, name)


def check_models() -> None:
    """Adds checks to the methods by which a model sets its attention."""
    if not hasattr(PreTrainedModel, "_sdpa_can_dispatch"):
        log.warning(f"maskwise: transformers {VERSION} does not say which models have no SDPA")
        return
    _replace("get_correct_attn_implementation", _with_check)
    _replace("_check_and_adjust_attn_implementation", _without_download)
    _replace("set_attn_implementation", _with_error)


def _replace(name: str, replacement: Any) -> None:
    method = getattr(PreTrainedModel, name, None)
    if method is None:
        log.warning(f"maskwise: transformers {VERSION} has no PreTrainedModel.{name}")
    else:
        setattr(PreTrainedModel, name, wraps(method)(replacement(method)))


def _with_check(correct: Any) -> Any:
    def get_correct(self: Any, requested_attention: Any, is_init_check: bool = False) -> Any:
        if requested_attention in (NAME, FLASH_NAME):
            _require_support(self, requested_attention, not is_init_check)
        return correct(self, requested_attention, is_init_check)

    return get_correct


def _without_download(adjust: Any) -> Any:
    """Skips transformers' search for a package to install or download, for names with "flash"."""

    def check_and_adjust(
        self: Any,
        attn_implementation: Any,
        is_init_check: bool = False,
        *others: Any,
        **options: Any,
    ) -> Any:
        if attn_implementation not in (NAME, FLASH_NAME):
            return adjust(self, attn_implementation, is_init_check, *others, **options)
        return self.get_correct_attn_implementation(attn_implementation, is_init_check)

    return check_and_adjust


def _with_error(assign: Any) -> Any:
    """Raises an error if transformers would only warn that a model's attention is unchanged."""

    def set_implementation(
        self: Any, attn_implementation: Any, *others: Any, **options: Any
    ) -> Any:
        name = attn_implementation
        name = name.get("") if isinstance(name, dict) else name
        if name in (NAME, FLASH_NAME):
            _require_support(self, name, True)
        return assign(self, attn_implementation, *others, **options)

    return set_implementation


def serve_paged_caches() -> None:
    """Makes continuous batching call Maskwise's functions instead of flash_attn's.

    Patches transformers, whose public hooks accept only functions from a package or a hub.
    """
    load = getattr(flash_utils, "_lazy_imports", None)
    helpers = [getattr(flash_utils, name, None) for name in ("_pad_input", "_unpad_input")]
    if load is None or None in helpers:
        log.warning(f'transformers {VERSION}: no continuous batching by "{FLASH_NAME}"')
        return
    functions = [flash_attn_func, flash_attn_varlen_func]
    if hasattr(flash_utils, "_flash_with_kvcache_fn"):  # missing in early releases of 5
        functions.append(flash_attn_with_kvcache)

    def lazy_imports(implementation: str | None, *others: Any, **options: Any) -> Any:
        if implementation == FLASH_NAME:
            return (*functions, *helpers)
        return load(implementation, *others, **options)

    flash_utils._lazy_imports = lazy_imports
