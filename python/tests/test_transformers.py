"""Compares attn_implementation="maskwise" with eager attention in small transformers models with
random weights."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from maskwise._call import AttentionCall

try:
    import maskwise.torch
    import maskwise.transformers as maskwise_transformers
    import torch
    import transformers
    from maskwise._torch_version import READS_MASKS
    from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, masking_utils
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from transformers.utils import logging

    logging.set_verbosity_error()
    VERSION = tuple(map(int, transformers.__version__.split(".")[:2]))
    IS_OLD = VERSION < (5, 23)
except ModuleNotFoundError:
    pytestmark = pytest.mark.skip(reason="no transformers: scripts/setup --exporters")

TOLERANCE = 2e-5
SMALL = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 99,
    "max_position_embeddings": 256,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "sliding_window": 24,
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
}
# Families that use transformers' attention interface.
FAMILIES = """
    llama mistral qwen2 qwen3 gemma gemma2 gemma3_text phi phi3 cohere cohere2 olmo olmo2 olmo3
    granite starcoder2 stablelm smollm3 glm glm4 helium nemotron gpt_neox gpt2 opt bert roberta
    xlm-roberta electra camembert albert distilbert modernbert nomic_bert ernie data2vec-text
    ernie4_5 exaone4 seed_oss arcee minimax hunyuan_v1_dense mixtral qwen2_moe qwen3_moe gpt_oss
    olmoe phimoe granitemoe glm4_moe bitnet biogpt llama4_text vaultgemma apertus ministral
    modernbert-decoder eurobert esm
""".split()  # noqa: SIM905
CACHED = ("llama", "mistral", "gemma2", "gemma3_text", "gpt_oss", "cohere2", "phi3", "llama4_text")


def small_config(family: str, **others: Any) -> Any:
    known = AutoConfig.for_model(family)
    base, aliases = known.to_dict(), getattr(known, "attribute_map", {})
    settings = {name: value for name, value in SMALL.items() if name in base or name in aliases}
    settings["pad_token_id"] = SMALL["pad_token_id"]  # some releases lack it in some configs
    if "sliding_attention" in (base.get("layer_types") or ()):
        settings["layer_types"] = ["sliding_attention", "full_attention"]
    elif "layer_types" in base:
        settings["layer_types"] = None
    return AutoConfig.for_model(family, **{**settings, **others})


def model_of(family: str, kind: Any = None, **others: Any) -> Any:
    torch.manual_seed(7)
    kind = AutoModel if kind is None else kind
    if IS_OLD and family not in CONFIG_MAPPING:
        pytest.skip(f"transformers {transformers.__version__} has no {family}")
    model = kind.from_config(small_config(family, **others), attn_implementation="eager")
    if IS_OLD and not model._can_set_attn_implementation():
        pytest.skip(f"transformers {transformers.__version__}: {family} has attention of its own")
    return model.eval().float()


def outputs(model: Any, **inputs: Any) -> dict[str, Any]:
    """Returns the last hidden states with eager attention and with Maskwise."""
    result = {}
    for name in ("eager", "maskwise"):
        model.set_attn_implementation(name)
        with torch.no_grad():
            result[name] = model(**inputs)[0]
    return result


def run_or_skip(model: Any, run: Callable[[], Any]) -> Any:
    """Returns run(). With an old torch or transformers, skips the test if run() also fails with
    transformers' own attention."""
    if READS_MASKS and not IS_OLD:
        return run()
    try:
        return run()
    except Exception as failure:
        reason = repr(failure)[:200]
    model.set_attn_implementation("eager")
    torch._dynamo.reset()
    try:
        run()
    except Exception:
        versions = f"torch {torch.__version__}, transformers {transformers.__version__}"
        pytest.skip(f"{versions}, eager attention fails, too: {reason}")
    pytest.fail(f"eager attention works: {reason}")


def padded(pad: str | None, length: int = 60) -> Any:
    mask = torch.ones(2, length, dtype=torch.long)
    if pad == "left":
        mask[0, :13] = 0
    elif pad == "right":
        mask[0, -13:] = 0
    elif pad == "holes":
        mask[0, 20:30] = 0
    return mask


def words(length: int = 60, seed: int = 3) -> Any:
    return torch.randint(5, 98, (2, length), generator=torch.Generator().manual_seed(seed))


def assert_close(results: dict[str, Any], kept: Any = None) -> None:
    ours, eager = results["maskwise"], results["eager"]
    if kept is not None:
        ours, eager = ours[kept.bool()], eager[kept.bool()]
    torch.testing.assert_close(ours, eager, atol=TOLERANCE, rtol=0)


@pytest.fixture(autouse=True)
def every_size(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Maskwise also runs small calls, except in tests whose names contain "small"."""
    if "small" not in request.node.name:
        monkeypatch.setattr(maskwise.torch, "LEAST_PRODUCTS", 0)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Records the masks of Maskwise's attention calls."""
    seen: list[Any] = []
    run = maskwise_transformers.run

    def counted(call: AttentionCall) -> Any:
        seen.append(call.attn_mask)
        return run(call)

    monkeypatch.setattr(maskwise_transformers, "run", counted)
    return seen


@pytest.mark.parametrize("family", FAMILIES)
def test_families(family: str, calls: list[Any]) -> None:
    model = model_of(family)
    for pad in ("left", "right", None):
        mask = padded(pad)
        assert_close(outputs(model, input_ids=words(), attention_mask=mask), mask)
    assert len(calls) >= 3
    # Before transformers 5.3, some models compute their mask as an array.
    assert VERSION < (5, 3) or all(rules._array is None for rules in calls), family


def test_torch_runs_small_calls(calls: list[Any]) -> None:
    model = model_of("qwen3")
    for pad in ("left", "right", None):
        mask = padded(pad)[:, :8]
        assert_close(outputs(model, input_ids=words(8), attention_mask=mask), mask)
    assert not calls


@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert", "qwen3", "gemma3_text"])
@pytest.mark.parametrize("name", ["maskwise", "maskwise_flash"])
def test_packed_batches(family: str, name: str, calls: list[Any]) -> None:
    """Packed inputs, as from DataCollatorWithFlattening, give the results of padded inputs."""
    model = model_of(family)
    mask, ids = padded("right"), words()
    mask[1, 20:] = 0
    with torch.no_grad():
        padded_ones = model(input_ids=ids, attention_mask=mask)[0][mask.bool()]
        model.set_attn_implementation(name)
        lengths = mask.sum(1)
        bounds = torch.cat([torch.zeros(1), lengths.cumsum(0)]).int()
        places = torch.cat([torch.arange(n) for n in lengths])[None]
        inputs = {"input_ids": ids[mask.bool()][None]}
        inputs["position_ids"] = places + (1 if family == "roberta" else 0)
        for side in ("q", "k"):
            inputs[f"cu_seq_lens_{side}"] = bounds
            inputs[f"max_length_{side}"] = int(lengths.max())
        packed = model(**inputs)[0][0]
    torch.testing.assert_close(packed, padded_ones, atol=TOLERANCE, rtol=0)
    assert calls


def test_padded_batches_through_flash_attn() -> None:
    model = model_of("mistral")
    for pad in ("left", "right", None):
        mask = padded(pad)
        results = {}
        for name in ("eager", "maskwise_flash"):
            model.set_attn_implementation(name)
            with torch.no_grad():
                results[name] = model(input_ids=words(), attention_mask=mask)[0][mask.bool()]
        torch.testing.assert_close(*results.values(), atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("window", [23, 24, 25, 59, 60, 61])
@pytest.mark.parametrize("family", ["mistral", "gemma3_text", "modernbert"])
def test_windows(family: str, window: int, calls: list[Any]) -> None:
    inputs = (
        {"local_attention": 2 * window} if family == "modernbert" else {"sliding_window": window}
    )
    assert_close(outputs(model_of(family, **inputs), input_ids=words()))
    assert any(rules._rules.window is not None for rules in calls)


def test_padding_with_holes_is_an_array(calls: list[Any]) -> None:
    mask = padded("holes")
    assert_close(outputs(model_of("llama"), input_ids=words(), attention_mask=mask), mask)
    assert all(rules._array is not None for rules in calls)


def test_packed_positions(calls: list[Any]) -> None:
    """Tokens attend only to their own document."""
    positions = torch.cat([torch.arange(25), torch.arange(35)])[None]
    for family in ("llama", "mistral", "qwen3"):
        inputs = {"input_ids": words()[:1], "position_ids": positions, "use_cache": False}
        assert_close(outputs(model_of(family), **inputs))
    assert all(rules._rules.documents for rules in calls)


@pytest.mark.parametrize("cache", [None, "static"])
@pytest.mark.parametrize("family", CACHED)
def test_generation_gives_the_same_tokens(family: str, cache: str | None) -> None:
    model = model_of(family, AutoModelForCausalLM)
    inputs = {"input_ids": words(30), "attention_mask": padded("left", 30)}
    options = {"max_new_tokens": 20, "min_new_tokens": 20, "do_sample": False}
    options |= {"cache_implementation": cache, "disable_compile": True}
    results = {}
    for name in ("eager", "maskwise"):
        model.set_attn_implementation(name)
        results[name] = run_or_skip(model, lambda: model.generate(**inputs, **options))
    assert results["maskwise"].shape == (2, 50)
    assert torch.equal(results["maskwise"], results["eager"])


def test_a_lost_mask_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison with eager attention fails if a mask is lost."""
    from transformers import AttentionMaskInterface

    model = model_of("llama")
    monkeypatch.setitem(
        AttentionMaskInterface._global_mapping, maskwise_transformers.NAME, lambda **_: None
    )
    with pytest.raises(AssertionError):
        assert_close(
            outputs(model, input_ids=words(), attention_mask=padded("left")), padded("left")
        )


def test_a_mask_of_four_dimensions() -> None:
    mask = torch.ones(60, 60, dtype=torch.bool).tril() & (words()[:1] % 7 != 0)
    mask |= torch.eye(60, dtype=torch.bool)
    model = model_of("llama")
    added = torch.where(mask, 0.0, torch.finfo(torch.float32).min)[None, None]
    assert_close(outputs(model, input_ids=words(), attention_mask=added))


def test_training_has_the_gradients_of_eager(
    calls: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maskwise.torch, "LEAST_PRODUCTS", 0)
    model = model_of("gemma2").train()
    gradients = {}
    for name in ("eager", "maskwise"):
        model.set_attn_implementation(name)
        model.zero_grad()
        torch.manual_seed(5)
        model(input_ids=words(), attention_mask=padded("left"))[0].square().sum().backward()
        gradients[name] = model.layers[0].self_attn.q_proj.weight.grad.clone()
    torch.testing.assert_close(gradients["maskwise"], gradients["eager"], atol=1e-3, rtol=1e-3)
    assert len(calls) == 2


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_sixteen_bits(dtype: str, calls: list[Any]) -> None:
    model = model_of("qwen3").to(getattr(torch, dtype))
    results = outputs(model, input_ids=words(), attention_mask=padded("left"))
    kept = padded("left").bool()
    apart = (results["maskwise"].float() - results["eager"].float())[kept].abs().max()
    assert apart < 0.06
    assert calls


def mask_arguments(
    rows: int,
    keys: int,
    q_offset: int = 0,
    kv_offset: int = 0,
    function: Any = None,
    padding: Any = None,
) -> dict[str, Any]:
    """Returns arguments of mask(), as this release of transformers passes them."""
    place = {"q_length": rows, "q_offset": q_offset}
    if "cache_position" in inspect.signature(masking_utils.sdpa_mask).parameters:
        place = {"cache_position": torch.arange(q_offset, q_offset + rows)}
    return {
        **place,
        "batch_size": 2,
        "kv_length": keys,
        "kv_offset": kv_offset,
        "mask_function": function or masking_utils.causal_mask_function,
        "attention_mask": padding,
    }


@pytest.mark.parametrize("offsets", [(0, 0), (7, 0), (30, 23), (5, 9)])
@pytest.mark.parametrize("seed", range(8))
def test_mask_functions(seed: int, offsets: tuple[int, int]) -> None:
    """transformers' mask functions, alone and combined, at several positions of a cache."""
    random = np.random.default_rng(seed)
    rows, keys = int(random.integers(1, 20)), int(random.integers(1, 30))
    q_offset, kv_offset = offsets
    padding = None
    if seed % 2 == 0:
        padding = torch.arange(keys + kv_offset) >= torch.tensor([[0], [3]])
    ids = torch.from_numpy(np.sort(random.integers(0, 3, (2, 80))))
    functions = [
        masking_utils.causal_mask_function,
        masking_utils.sliding_window_causal_mask_function(int(random.integers(1, 9))),
        masking_utils.chunked_causal_mask_function(5, torch.tensor([0, 3])),
        masking_utils.chunked_causal_mask_function(4, torch.zeros(2, dtype=torch.long)),
        masking_utils.packed_sequence_mask_function(ids),
        lambda b, h, q, kv: (q + kv) % 3 != b,
    ]
    if not IS_OLD or hasattr(masking_utils, "sliding_window_bidirectional_mask_function"):
        functions += [
            masking_utils.bidirectional_mask_function,
            masking_utils.sliding_window_bidirectional_mask_function(int(random.integers(1, 9))),
        ]
    if not IS_OLD or hasattr(masking_utils, "blockwise_overlay"):
        blocks = masking_utils.blockwise_overlay(ids)
        functions.append(masking_utils.and_masks(masking_utils.causal_mask_function, blocks))
    for function in functions:
        arguments = mask_arguments(rows, keys, q_offset, kv_offset, function, padding)
        actual = maskwise_transformers.mask(**arguments)
        dense = masking_utils.sdpa_mask(**arguments, allow_is_causal_skip=False)
        expected = np.broadcast_to(dense.numpy(), actual.shape)
        rules = actual.rules.to_dense(rows, keys, 2)
        rules = rules if rules.ndim == 4 else rules[:, None]
        np.testing.assert_array_equal(rules, expected, actual.rules.__repr__())
        np.testing.assert_array_equal(actual.dense().numpy(), expected)
        assert torch.equal(actual[..., :1], actual.dense()[..., :1])


def test_a_mask_that_was_written_to_is_read_again() -> None:
    q, k, v = (torch.randn(2, 4, 9, 16) for _ in range(3))
    module = torch.nn.Module()
    for inference in (False, True):
        with torch.inference_mode(inference), torch.no_grad():
            for edit in (
                lambda mask: mask.__setitem__((slice(None), slice(None), slice(3, 6), 2), False),
                lambda mask: mask[:, :, 5:8].fill_(False),
            ):
                mask = maskwise_transformers.mask(**mask_arguments(9, 9))
                edit(mask)
                actual, _ = maskwise_transformers.attention(module, q, k, v, mask)
                plain = torch.nn.functional.scaled_dot_product_attention(q, k, v, mask.dense())
                torch.testing.assert_close(actual, plain.transpose(1, 2), atol=1e-5, rtol=0)
            with pytest.raises((ValueError, RuntimeError)):
                maskwise_transformers.attention(
                    module, q, k, v, maskwise_transformers.mask(**mask_arguments(9, 8))
                )


@pytest.mark.parametrize("causal", [True, False])
def test_options_that_sdpa_lacks(causal: bool) -> None:
    """Results are equal with and without gradients."""
    q, k, v = (torch.randn(2, heads, 9, 16) for heads in (4, 2, 2))
    module = torch.nn.Module()
    settings = {"softcap": 3.0, "s_aux": torch.randn(4), "position_bias": torch.randn(1, 4, 9, 9)}
    with torch.no_grad():
        actual, _ = maskwise_transformers.attention(
            module, q, k, v, None, is_causal=causal, **settings
        )
    q.requires_grad_()
    plain, _ = maskwise_transformers.attention(module, q, k, v, None, is_causal=causal, **settings)
    assert plain.requires_grad
    torch.testing.assert_close(actual, plain.detach(), atol=1e-5, rtol=0)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kind", ["bert", "llama"])
def test_a_model_exported_at_a_small_length_runs_at_a_long_length(kind: str, masked: bool) -> None:
    model = model_of(kind)

    class Whole(torch.nn.Module):  # type: ignore[misc]
        def forward(self, ids: Any, mask: Any) -> Any:
            settings = {"use_cache": False} if kind == "llama" else {}
            return model(input_ids=ids, attention_mask=mask if masked else None, **settings)[0]

    few, many = ((words(length), padded("left", length)) for length in (20, 200))
    length = {1: torch.export.Dim("L", min=2, max=256)}
    whole = Whole()
    model.set_attn_implementation("maskwise")
    shapes = (length, length)
    exported = run_or_skip(
        model, lambda: torch.export.export(whole, few, dynamic_shapes=shapes, strict=False)
    )
    with torch.no_grad():
        assert torch.allclose(exported.module()(*many), whole(*many), atol=2e-5)
