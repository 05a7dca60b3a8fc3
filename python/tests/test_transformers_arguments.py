"""Tests every argument that transformers' layers pass to "maskwise" and "maskwise_flash", in small,
large and compiled calls and with gradients. Models that would lose their masks are refused.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import definition
import pytest

try:
    import every_model
    import maskwise.torch
    import maskwise.transformers as maskwise_transformers
    import torch
    from test_transformers import VERSION
    from transformers import AutoConfig, AutoModel, AutoModelForSeq2SeqLM, PreTrainedModel
    from transformers.utils import logging

    logging.set_verbosity_error()
except ModuleNotFoundError:
    pytestmark = pytest.mark.skip(reason="no transformers: scripts/setup --exporters")

HEADS, KEY_HEADS, DEPTH = 4, 2, 16
FUNCTIONS = {"maskwise": "attention", "maskwise_flash": "flash_attention"}


def randn(*shape: int, seed: int = 0) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def tensors(rows: int, keys: int | None = None, batch: int = 1) -> list[Any]:
    sizes = ((HEADS, rows), (KEY_HEADS, keys or rows), (KEY_HEADS, keys or rows))
    return [randn(batch, *size, DEPTH, seed=seed) for seed, size in enumerate(sizes)]


def expected(operands: list[Any], kept: Any, others: dict[str, Any]) -> Any:
    """Returns the result by definition. kept: True where a row keeps a key; broadcasts to (batch,
    heads, rows, keys)."""
    scale, cap = others.get("scaling", DEPTH**-0.5), others.get("softcap")
    bias, sinks = others.get("position_bias"), others.get("s_aux")
    options = {"bias": bias, "scale": scale, "soft_cap": cap, "sinks": sinks}
    return definition.attention(*operands, kept=kept, **options)[0]


def same_documents(ends: list[int]) -> Any:
    ids = torch.bucketize(torch.arange(ends[-1]), torch.tensor(ends[1:]), right=True)
    return ids[:, None] == ids


def causal(rows: int) -> Any:
    return torch.ones(rows, rows, dtype=torch.bool).tril()


def cases(rows: int) -> dict[str, tuple[dict[str, Any], Any]]:
    """Returns cases by name: the arguments, and which keys they leave unmasked."""
    ends = [0, rows // 3, rows // 3 + 5, rows]
    cu = torch.tensor(ends, dtype=torch.int32)
    packed = {"cu_seq_lens_q": cu, "cu_seq_lens_k": cu, "max_length_q": rows, "max_length_k": rows}
    lower, mask = causal(rows), same_documents(ends)
    everything = torch.ones_like(lower)
    far = randn(1, 1, rows, rows, seed=9) > 0.3
    bias = randn(1, HEADS, rows, rows, seed=5)
    return {
        "causal": ({}, lower),
        "is_causal": ({"is_causal": False}, everything),
        "scaling": ({"scaling": 0.5}, lower),
        "softcap": ({"softcap": 2.0}, lower),
        "s_aux": ({"s_aux": randn(HEADS, seed=6)}, lower),
        "s_aux, softcap": ({"s_aux": randn(HEADS, seed=6), "softcap": 2.0}, lower),
        "position_bias": ({"position_bias": bias, "is_causal": False}, everything),
        "position_bias, causal": ({"position_bias": bias}, lower),
        "position_bias, softcap": ({"position_bias": bias, "softcap": 2.0}, lower),
        "boolean mask": ({"attention_mask": far}, far),
        "added mask": ({"attention_mask": torch.where(far, 0.0, -torch.inf)}, far),
        "mask, position_bias": ({"attention_mask": far, "position_bias": bias}, far),
        "mask, s_aux": ({"attention_mask": far, "s_aux": randn(HEADS, seed=6)}, far),
        "cu_seq_lens": (packed, lower & mask),
        "cu_seq_lens, not causal": ({**packed, "is_causal": False}, mask),
        "cu_seq_lens, softcap": ({**packed, "softcap": 2.0}, lower & mask),
        "cu_seq_lens, s_aux": ({**packed, "s_aux": randn(HEADS, seed=6)}, lower & mask),
        "cu_seq_lens, position_bias": ({**packed, "position_bias": bias}, lower & mask),
        "cu_seq_lens, mask": ({**packed, "attention_mask": far}, far & mask),
        "cu_seq_lens_q alone": ({"cu_seq_lens_q": cu}, lower & mask),
    }


def flash_cases(rows: int) -> dict[str, tuple[dict[str, Any], Any]]:
    """Returns cases(), and cases of arguments that transformers passes only to flash_attn."""
    ends = [0, rows // 3, rows // 3 + 5, rows]
    cu = torch.tensor(ends, dtype=torch.int32)
    lower, mask = causal(rows), same_documents(ends)
    near = (torch.arange(rows)[:, None] - torch.arange(rows)).abs() < 7
    padding = torch.ones(1, rows, dtype=torch.long)
    padding[:, -rows // 4 :] = 0
    positions = torch.cat([torch.arange(b - a) for a, b in pairwise(ends)])
    kept = padding.bool()
    return {
        **cases(rows),
        "sliding_window": ({"sliding_window": 7}, lower & near),
        "sliding_window, not causal": ({"sliding_window": 7, "is_causal": False}, near),
        "padding": ({"attention_mask": padding}, lower & kept),
        "padding, window": ({"attention_mask": padding, "sliding_window": 7}, lower & near & kept),
        "padding, s_aux": (
            {"attention_mask": padding, "s_aux": randn(HEADS, seed=6)},
            lower & kept,
        ),
        "position_ids": ({"position_ids": positions[None]}, lower & mask),
        "cu_seq_lens, window": (
            {"cu_seq_lens_q": cu, "cu_seq_lens_k": cu, "sliding_window": 7},
            lower & mask & near,
        ),
    }


def layer() -> Any:
    module = torch.nn.Module()
    module.is_causal, module.num_key_value_groups = True, HEADS // KEY_HEADS
    module.config = SimpleNamespace(_attn_implementation="maskwise_flash")
    return module


def compiled(call: Any) -> Any:
    torch._dynamo.reset()
    return torch.compile(call, backend="eager", fullgraph=True)


@pytest.mark.parametrize("way", ["small", "large", "gradients", "compiled"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_argument(
    name: str, way: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    ran: list[Any] = []
    run = maskwise_transformers.run
    monkeypatch.setattr(maskwise_transformers, "run", lambda call: ran.append(call) or run(call))
    if way != "small":
        monkeypatch.setattr(maskwise.torch, "LEAST_PRODUCTS", 0)
    call = getattr(maskwise_transformers, FUNCTIONS[name])
    rows = 40
    all_cases = cases(rows) if name == "maskwise" else flash_cases(rows)
    for case, (others, kept) in all_cases.items():
        inputs = tensors(rows)
        if way == "gradients":
            inputs[0].requires_grad_()
        others = {"attention_mask": None, **others}
        out, _ = (compiled(call) if way == "compiled" else call)(layer(), *inputs, **others)
        assert out.requires_grad == (way == "gradients")
        right = expected([one.detach() for one in inputs], kept, others).float().transpose(1, 2)
        rows_kept = kept.expand(1, 1, rows, rows).any(-1)[0, 0]
        message = f"{name}, {way}, {case}: {{}}"
        torch.testing.assert_close(
            out.detach()[:, rows_kept],
            right[:, rows_kept],
            atol=1e-5,
            rtol=0,
            msg=message.format,
        )
    assert bool(ran) == (way in ("large", "gradients"))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_torch_runs_dropout_within_documents(name: str) -> None:
    cu = torch.tensor([0, 20, 40], dtype=torch.int32)
    packed = {"cu_seq_lens_q": cu, "cu_seq_lens_k": cu, "max_length_q": 20, "max_length_k": 20}
    q, k, v = tensors(40)
    other = v.clone()
    other[:, :, :20] += 5
    results = []
    for value in (v, other):
        torch.manual_seed(1)
        call = getattr(maskwise_transformers, FUNCTIONS[name])
        results.append(call(layer(), q, k, value, None, dropout=0.3, **packed)[0])
    torch.testing.assert_close(results[0][:, 20:], results[1][:, 20:], atol=0, rtol=0)
    assert not torch.equal(results[0][:, :20], results[1][:, :20])


@pytest.mark.parametrize("way", ["small", "large", "compiled"])
def test_documents_of_different_rows_and_keys(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A document's last row aligns with its last key."""
    monkeypatch.setattr(maskwise.torch, "LEAST_PRODUCTS", 2**40 if way == "small" else 0)
    call = (
        compiled(maskwise_transformers.flash_attention)
        if way == "compiled"
        else maskwise_transformers.flash_attention
    )
    q, k, v = tensors(10, 30)
    ends = torch.tensor([0, 4, 10]), torch.tensor([0, 13, 30])
    others = dict(zip(("cu_seq_lens_q", "cu_seq_lens_k"), ends, strict=True))
    out, _ = call(layer(), q, k, v, None, **others)
    for first, last, key, end in ((0, 4, 0, 13), (4, 10, 13, 30)):
        inputs = [q[:, :, first:last], k[:, :, key:end], v[:, :, key:end]]
        ahead = end - key - (last - first)
        kept = torch.ones(last - first, end - key, dtype=torch.bool).tril(ahead)
        right = expected(inputs, kept, {}).float().transpose(1, 2)
        torch.testing.assert_close(out[:, first:last], right, atol=1e-5, rtol=0)


def test_documents_are_of_one_sequence() -> None:
    cu = torch.tensor([0, 10])
    with pytest.raises(ValueError, match="one sequence, query has 2"):
        maskwise_transformers.attention(layer(), *tensors(10, batch=2), None, cu_seq_lens_q=cu)


SIZES = {
    "vocab_size": 99,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 96,
}


def small(kind: str, **others: Any) -> Any:
    config = AutoConfig.for_model(kind)
    known = {name for name in (*config.to_dict(), *config.attribute_map)}
    return AutoConfig.for_model(
        kind, **{name: size for name, size in SIZES.items() if name in known}, **others
    )


def error_of_transformers(config: Any, name: str) -> str:
    with pytest.raises(ValueError, match="does not support") as error:
        AutoModel.from_config(config, attn_implementation=name)
    return str(error.value)


REFUSED = {
    ("bloom", "maskwise"): "sdpa",
    ("mpt", "maskwise"): "sdpa",
    ("mpnet", "maskwise"): "sdpa",
    ("xglm", "maskwise"): "sdpa",
    ("longformer", "maskwise"): "sdpa",
    ("gpt_neox_japanese", "maskwise"): "sdpa",
    ("t5", "maskwise_flash"): "flash_attention_2",
    ("mt5", "maskwise_flash"): "flash_attention_2",
    ("umt5", "maskwise_flash"): "flash_attention_2",
    ("bloom", "maskwise_flash"): "flash_attention_2",
}


@pytest.mark.parametrize(("kind", "name"), REFUSED)
def test_refusals_have_transformers_text(kind: str, name: str, tmp_path: Any) -> None:
    words = error_of_transformers(small(kind), REFUSED[kind, name])
    model = AutoModel.from_config(small(kind), attn_implementation="eager")
    model.save_pretrained(tmp_path)
    ways = {
        "from_config": lambda: AutoModel.from_config(small(kind), attn_implementation=name),
        "from_pretrained": lambda: AutoModel.from_pretrained(tmp_path, attn_implementation=name),
        "set_attn_implementation": lambda: model.set_attn_implementation(name),
    }
    for way, build in ways.items():
        with pytest.raises(ValueError, match="does not support") as error:
            build()
        # transformers' text names the folder of a loaded model.
        assert str(error.value).replace(str(tmp_path), "") == words, way
    assert model.config._attn_implementation == "eager"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_models_with_a_table_of_classes_are_refused_in_one_sentence(name: str) -> None:
    config = small("falcon", alibi=False)
    with pytest.raises(ValueError, match=r"has attention of its own for eager, .*install\(\)"):
        AutoModel.from_config(config, attn_implementation=name)


@pytest.mark.parametrize("decoded", [23, 40])
@pytest.mark.parametrize("side", ["left", "right", None])
@pytest.mark.parametrize("kind", ["bart", "m2m_100"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_encoders_and_decoders_of_different_lengths(
    name: str, kind: str, side: str | None, decoded: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maskwise.torch, "LEAST_PRODUCTS", 0)
    torch.manual_seed(0)
    sizes = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 64, "vocab_size": 99}
    config = AutoConfig.for_model(
        kind,
        **sizes,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=96,
        decoder_ffn_dim=96,
        pad_token_id=0,
        eos_token_id=2,
        decoder_start_token_id=1,
    )
    model = AutoModelForSeq2SeqLM.from_config(config, attn_implementation="eager").eval()
    mask = torch.ones(2, 40, dtype=torch.long)
    if side is not None:
        mask[0, slice(0, 9) if side == "left" else slice(31, 40)] = 0
    words = torch.randint(5, 98, (2, 40), generator=torch.Generator().manual_seed(3))
    inputs = {"input_ids": words, "attention_mask": mask, "decoder_input_ids": words[:, :decoded]}
    with torch.no_grad():
        right = model(**inputs).logits
        model.set_attn_implementation(name)
        torch.testing.assert_close(model(**inputs).logits, right, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", ["gpt2", "gpt_oss"])
def test_flash_without_linear_layers_and_with_sinks(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maskwise.torch, "LEAST_PRODUCTS", 0)
    torch.manual_seed(0)
    others = {"num_key_value_heads": 2, "head_dim": 16, "num_local_experts": 4}
    model = AutoModel.from_config(small(kind, **(others if kind == "gpt_oss" else {}))).eval()
    words = torch.randint(5, 98, (2, 40), generator=torch.Generator().manual_seed(3))
    results = {}
    for name in ("eager", "maskwise_flash"):
        try:
            model.set_attn_implementation(name)
        except ValueError as refusal:
            if VERSION < (5, 3) and kind == "gpt_oss":
                pytest.skip(str(refusal))
            raise
        with torch.no_grad():
            results[name] = model(input_ids=words)[0]
    torch.testing.assert_close(*results.values(), atol=1e-5, rtol=0)


def test_an_older_transformers_is_refused_at_import(monkeypatch: pytest.MonkeyPatch) -> None:
    import transformers

    monkeypatch.setattr(transformers, "__version__", "4.55.4")
    monkeypatch.delitem(sys.modules, "maskwise.transformers")
    with pytest.raises(ImportError, match=r"needs transformers 4\.5\d or newer, this is 4\.55\.4"):
        import maskwise.transformers  # noqa: F401


@pytest.mark.parametrize(
    "missing", ["_check_and_adjust_attn_implementation", "_sdpa_can_dispatch", "_lazy_imports"]
)
def test_a_missing_private_name_prints_one_line(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from maskwise import _transformers_support as support

    lines: list[str] = []
    monkeypatch.setattr(support.log, "warning", lines.append)
    for name in ("get_correct_attn_implementation", "set_attn_implementation"):
        monkeypatch.setattr(PreTrainedModel, name, getattr(PreTrainedModel, name))
    for owner in (PreTrainedModel, support.flash_utils):
        if hasattr(owner, missing):
            monkeypatch.delattr(owner, missing)
    support.check_models()
    support.serve_paged_caches()
    assert len(lines) == 1
    assert "transformers" in lines[0]


@pytest.mark.parametrize("kind", ["gemma3", "paligemma"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_blocks_of_images(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tokens of an image attend to each other."""
    monkeypatch.setattr(maskwise.torch, "LEAST_PRODUCTS", 0)
    variant = every_model.VARIANTS[0]
    if name == "maskwise_flash" and every_model.refusal(kind, variant, "flash_attention_2"):
        pytest.skip(f"this transformers has no flash attention for {kind}")
    model = every_model.build(kind, variant, "eager")
    places = torch.arange(40)
    inputs = {
        "input_ids": torch.randint(5, 98, (2, 40), generator=torch.Generator().manual_seed(3)),
        "token_type_ids": ((places > 3) & (places < 15)).long().expand(2, -1),
    }
    results = {}
    for one in ("eager", name):
        model.set_attn_implementation(one)
        with torch.no_grad():
            results[one] = model(**inputs)[0]
    torch.testing.assert_close(results[name], results["eager"], atol=1e-4, rtol=0)
    if every_model.transformers.__version__.startswith("4."):
        return  # in transformers 4, PaliGemma uses token_type_ids in training only
    model.set_attn_implementation("eager")
    with torch.no_grad():
        plain = model(**{**inputs, "token_type_ids": torch.zeros(2, 40, dtype=torch.long)})[0]
    assert (plain - results["eager"]).abs().max() > 1e-3
