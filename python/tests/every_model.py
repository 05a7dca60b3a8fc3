"""Compares "maskwise" and "maskwise_flash" with eager attention, for each type of model that
transformers can build from a small configuration.

usage: every_model.py [--part I N] [TYPE...]

A type agrees if its results equal those of eager or SDPA attention. Masked tokens must not affect
unmasked rows, unless they do in eager attention. from_config() and set_attn_implementation() select
the attention. Each model runs without padding and with padding on either side. "maskwise"
corresponds to "sdpa", and "maskwise_flash" to "flash_attention_2". If transformers refuses the
counterpart for a type, Maskwise must refuse the type with the same text. Maskwise may also refuse
types with attention of their own.
"""

from __future__ import annotations

import argparse
import inspect
import os
import resource
import signal
import sys
import warnings
from collections import Counter
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import maskwise.torch
import maskwise.transformers as maskwise_transformers
import torch
import transformers
from maskwise._call import AttentionCall
from small_models import (
    CONFIG_MAPPING,
    LENGTH,
    VARIANTS,
    Variant,
    build,
    candidates,
    require_small,
    words,
)
from transformers import PreTrainedModel, modeling_utils

STOCK = {maskwise_transformers.NAME: "sdpa", maskwise_transformers.FLASH_NAME: "flash_attention_2"}
OWN_REFUSAL = "has attention of its own"
MOST_BYTES = 8 * 2**30
TOLERANCE = 2e-4  # relative to the largest value
SECONDS = 180  # time limit per type
PADDED = 9


def padded(side: str | None) -> Any:
    mask = torch.ones(2, LENGTH, dtype=torch.long)
    if side == "left":
        mask[0, :PADDED] = 0
    elif side == "right":
        mask[0, -PADDED:] = 0
    return mask


def outputs(model: Any, inputs: dict[str, Any]) -> list[Any]:
    torch.manual_seed(0)
    with torch.no_grad():
        result = model(**inputs)
    names = ("logits", "last_hidden_state", "encoder_last_hidden_state")
    names += ("image_embeds", "text_embeds", "pooler_output")
    named = [getattr(result, name, None) for name in names] if hasattr(result, "keys") else []
    named = [one for one in named if torch.is_tensor(one)]
    leaves = torch.utils._pytree.tree_leaves(
        result if isinstance(result, tuple) else list(result.values())
    )
    floats = [one for one in leaves if torch.is_tensor(one) and one.is_floating_point()]
    return named or floats[:1]


@dataclass
class Case:
    inputs: dict[str, Any]
    mask: Any
    expected: list[Any]
    sdpa_results: list[Any] | None = None  # may differ from eager results in fully masked rows
    changed: dict[str, Any] | None = None  # inputs with other tokens where the mask is 0
    is_independent: bool = False  # in eager attention, masked tokens have no effect on other rows


def cases_of(model: Any) -> list[Case]:
    """Returns cases: inputs and the results of eager attention."""
    failure: Exception | None = None
    for inputs in candidates(model):
        try:
            first = outputs(model, inputs)
            break
        except (TypeError, ValueError, RuntimeError, AttributeError, KeyError, IndexError) as error:
            failure = failure or error
    else:
        raise LookupError(f"no inputs: {failure!r}")
    if not first:
        raise LookupError("no outputs")
    cases = [Case(inputs, None, first)]
    takes_mask = "attention_mask" in inspect.signature(model.forward).parameters
    for side in ("left", "right") if takes_mask and "input_ids" in inputs else ():
        mask = padded(side)
        masked = {**inputs, "attention_mask": mask}
        other = torch.where(mask.bool(), inputs["input_ids"], words(LENGTH, 5))
        case = Case(masked, mask, outputs(model, masked), changed={**masked, "input_ids": other})
        case.is_independent = not apart(outputs(model, case.changed or {}), case.expected, mask)
        cases.append(case)
    with suppress(ValueError, KeyError):
        model.set_attn_implementation("sdpa")
        for case in cases:
            case.sdpa_results = outputs(model, case.inputs)
    model.set_attn_implementation("eager")
    return cases


def unmasked(values: Any, mask: Any) -> Any:
    """Returns the unmasked rows. `values` may have one extra row, first or last."""
    if mask is None or values.ndim < 2 or len(values) != len(mask):
        return values
    more = values.shape[1] - mask.shape[1]
    if not 0 <= more <= 1:
        return values
    pad = torch.nn.functional.pad
    return values[(pad(mask, (more, 0), value=1) * pad(mask, (0, more), value=1)).bool()]


def apart(actual: list[Any], expected: list[Any], mask: Any) -> str:
    """Describes the first difference in unmasked rows; empty if there is none."""
    if [one.shape for one in actual] != [one.shape for one in expected]:
        return f"shapes {[tuple(one.shape) for one in actual]}"
    for value, other in zip(actual, expected, strict=True):
        value, other = (unmasked(one, mask).float() for one in (value, other))
        if not torch.equal(value.isfinite(), other.isfinite()):
            return f"{(~value.isfinite()).sum()} values are not finite"
        value, other = value[value.isfinite()], other[other.isfinite()]
        scale = max(1.0, float(other.abs().max())) if other.numel() else 1.0
        difference = float((value - other).abs().max()) if other.numel() else 0.0
        if difference > TOLERANCE * scale:
            return f"{difference:.3g} at values up to {scale:.3g}"
    return ""


@dataclass
class Count:
    attentions: int = 0


@contextmanager
def counted() -> Iterator[Count]:
    """Counts the attentions that Maskwise runs."""
    count, run = Count(), maskwise_transformers.run

    def counting(call: AttentionCall) -> Any:
        count.attentions += 1
        return run(call)

    maskwise_transformers.run = counting
    try:
        yield count
    finally:
        maskwise_transformers.run = run


@contextmanager
def pretended_flash_attn() -> Iterator[None]:
    """Makes transformers act as if flash_attn were installed, so that errors are about the
    model."""

    def correct(self: Any, attn_implementation: Any, *_: Any, **__: Any) -> Any:
        return self.get_correct_attn_implementation(attn_implementation, True)

    with ExitStack() as patches:
        for owner, name, value in (
            (PreTrainedModel, "_check_and_adjust_attn_implementation", correct),
            (PreTrainedModel, "_flash_attn_import_error", lambda *_, **__: None),
            (modeling_utils, "is_flash_attn_2_available", lambda: True),
        ):
            if hasattr(owner, name):
                patches.enter_context(patch.object(owner, name, value))
        yield


def refusal(kind: str, variant: Variant, name: str) -> str:
    """Returns the error text of from_config(); empty if there is no error."""
    try:
        with (
            pretended_flash_attn(),
            torch.device("meta"),
            suppress(NotImplementedError, RuntimeError),
        ):
            build(kind, variant, name)
    except (ImportError, TypeError):  # needs a package or a download that is missing
        return ""
    except ValueError as error:
        return str(error).replace(repr(name), "NAME")
    return ""


def faults_of(model: Any, cases: list[Case], name: str) -> list[str]:
    faults = []
    for case in cases:
        actual = outputs(model, case.inputs)
        difference = apart(actual, case.expected, case.mask)
        reference = case.sdpa_results
        if difference and (reference is None or apart(actual, reference, case.mask)):
            faults.append(f"{name} differs by {difference}")
        if case.is_independent and apart(outputs(model, case.changed or {}), actual, case.mask):
            faults.append(f"{name}: a masked token changes an unmasked row")
    return faults


@dataclass
class Verdict:
    kind: str
    faults: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    attentions: int = 0
    unbuilt: str = ""

    def summary(self) -> str:
        if self.unbuilt:
            return "not buildable"
        if self.faults:
            return "DIFFERING"
        return "refused" if len(self.refused) == len(STOCK) else "agreed"


def examine_name(
    verdict: Verdict, variant: Variant, model: Any, cases: list[Case], name: str
) -> None:
    stock_refusal = refusal(verdict.kind, variant, STOCK[name])
    refusals: list[str] = []
    ways: list[Callable[[], Any]] = [
        lambda: build(verdict.kind, variant, name),
        lambda: model.set_attn_implementation(name) or model,
    ]
    for way in ways:
        try:
            one = way()
        except ValueError as error:
            refusals.append(str(error).replace(repr(name), "NAME"))
        else:
            verdict.faults += faults_of(one, cases, name)
    model.set_attn_implementation("eager")
    if not refusals:
        return
    if stock_refusal and all(stock_refusal in one for one in refusals):
        verdict.refused.append(f"{name}: transformers refuses {STOCK[name]}, too")
    elif not stock_refusal and all(OWN_REFUSAL in one for one in refusals):
        verdict.refused.append(f"{name}: the type {OWN_REFUSAL}")
    else:
        texts = f"{refusals[0][:150]} (stock: {stock_refusal[:80]!r})"
        verdict.faults.append(f"{name} is refused: {texts}")


def examine(kind: str) -> Verdict:
    verdict = Verdict(kind)
    for variant in VARIANTS:
        try:
            require_small(kind, variant)
            model = build(kind, variant, "eager")
            cases = cases_of(model)
            break
        except TimeoutError:
            raise
        except Exception as error:
            verdict.unbuilt = verdict.unbuilt or f"{type(error).__name__}: {error}"
    else:
        return verdict
    verdict.unbuilt = ""
    with counted() as count:
        for name in STOCK:
            try:
                examine_name(verdict, variant, model, cases, name)
            except TimeoutError:
                raise
            except Exception as error:
                verdict.faults.append(f"{name}: {type(error).__name__}: {str(error)[:200]}")
    verdict.attentions = count.attentions
    return verdict


def within(seconds: int, kind: str) -> Verdict:
    def late(*_: Any) -> None:
        raise TimeoutError(f"more than {seconds} seconds")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        return examine(kind)
    except TimeoutError as error:
        return Verdict(kind, unbuilt=str(error))
    finally:
        signal.alarm(0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", nargs=2, type=int, metavar=("I", "N"), default=(0, 1))
    parser.add_argument("types", nargs="*", metavar="TYPE")
    arguments = parser.parse_args()
    transformers.logging.set_verbosity_error()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)  # models are small
    # A model may be large despite its small configuration.
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    maskwise.torch.LEAST_PRODUCTS = 0
    part, parts = arguments.part
    counts: Counter[str] = Counter()
    for kind in arguments.types or sorted(CONFIG_MAPPING)[part::parts]:
        verdict = within(SECONDS, kind)
        counts[verdict.summary()] += 1
        counts["agreed without a call of Maskwise"] += (
            verdict.summary() == "agreed" and not verdict.attentions
        )
        details = verdict.unbuilt or "; ".join(verdict.faults or verdict.refused)
        print(f"{kind}: {verdict.summary()} {verdict.attentions} {details[:400]}", flush=True)
    print("every_model:", ", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    return 1 if counts["DIFFERING"] else 0


if __name__ == "__main__":
    sys.exit(main())
