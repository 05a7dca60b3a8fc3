"""Which models of transformers take "maskwise" and "maskwise_flash": those that transformers itself
lets have "sdpa" and "flash_attention_2"."""

# torch and transformers need not be there where the package is checked.
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
# What transformers asks before it lets a model have flash attention: since 5.0, and before.
FLASH_CHECKS = ("_flash_attn_can_dispatch", "_flash_attn_2_can_dispatch")
SERVED_TABLES: set[str] = set()  # "maskwise_flash", where _serve_flash_tables() could do it

log = logging.get_logger(__name__)


def _require_flash(model: Any) -> None:
    """Calls transformers' check only where it refuses the model: it asks for flash_attn, too."""
    if model._supports_flash_attn or getattr(model, "_supports_flash_attn_2", False):
        return
    new, old = (getattr(model, name, None) for name in FLASH_CHECKS)
    if new is not None:
        new(2)
    elif old is not None:
        old()


def _require_no_table(model: Any, name: str) -> None:
    """Some models take the class of their attention from a table by transformers' own names."""
    module = sys.modules[type(model).__module__]
    # They look every name with "flash" in it up as flash_attention_2.
    knows_flash = name in SERVED_TABLES and hasattr(module, "is_flash_attention_requested")
    for table in vars(module).values():
        is_table = isinstance(table, dict) and "eager" in table and name not in table
        if not is_table or not all(isinstance(one, type) for one in table.values()):
            continue
        if not (knows_flash and "flash_attention_2" in table):
            raise ValueError(
                f"{type(model).__name__} has attention of its own for {', '.join(table)}: "
                f'it takes no attn_implementation="{name}"'
            )


def _require_support(model: Any, name: str, is_built: bool) -> None:
    """ValueError in transformers' words where the model would lose its mask."""
    if name == FLASH_NAME:
        _require_flash(model)
    elif not getattr(model, "_supports_attention_backend", False):
        # Some of those that are one have no "sdpa" for want of soft caps or sinks alone.
        model._sdpa_can_dispatch(True)
    if not is_built:
        _require_no_table(model, name)


def check_models() -> None:
    """Every model asks get_correct_attn_implementation(), when it is built and when it changes."""
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
    def get_correct(self: Any, requested: Any, is_init_check: bool = False) -> Any:
        if requested in (NAME, FLASH_NAME):
            _require_support(self, requested, not is_init_check)
        return correct(self, requested, is_init_check)

    return get_correct


def _without_download(adjust: Any) -> Any:
    """Transformers looks for every name with "flash" in it among packages and downloads."""

    def check_and_adjust(
        self: Any, requested: Any, is_init_check: bool = False, *others: Any, **options: Any
    ) -> Any:
        if requested not in (NAME, FLASH_NAME):
            return adjust(self, requested, is_init_check, *others, **options)
        if requested in SERVED_TABLES:
            flash_utils.lazy_import_flash_attention(requested)
        return self.get_correct_attn_implementation(requested, is_init_check)

    return check_and_adjust


def _with_error(assign: Any) -> Any:
    """Raises where transformers only warns that a model keeps the attention it has."""

    def set_implementation(self: Any, requested: Any, *others: Any, **options: Any) -> Any:
        name = requested.get("") if isinstance(requested, dict) else requested
        if name in (NAME, FLASH_NAME):
            _require_support(self, name, True)
        return assign(self, requested, *others, **options)

    return set_implementation


def serve_flash_tables() -> None:
    """Models with classes of their own for flash_attn (Falcon, GPT-J) get Maskwise's functions.

    transformers has no public place for functions that are neither a package nor from a hub.
    """
    load = getattr(flash_utils, "_lazy_imports", None)
    helpers = [getattr(flash_utils, name, None) for name in ("_pad_input", "_unpad_input")]
    if load is None or None in helpers:
        log.warning(f'transformers {VERSION}: no "{FLASH_NAME}" for Falcon, GPT-J, GPT-Neo and Bark')
        return
    functions = [flash_attn_func, flash_attn_varlen_func]
    if hasattr(flash_utils, "_flash_with_kvcache_fn"):  # since 5.3
        functions.append(flash_attn_with_kvcache)

    def lazy_imports(implementation: str | None, *others: Any, **options: Any) -> Any:
        if implementation == FLASH_NAME:
            return (*functions, *helpers)
        return load(implementation, *others, **options)

    flash_utils._lazy_imports = lazy_imports
    SERVED_TABLES.add(FLASH_NAME)
