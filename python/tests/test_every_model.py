"""Runs every_model.py on some of transformers' model types."""

from __future__ import annotations

import pytest
from maskwise._call import AttentionCall

try:
    import every_model
    import maskwise.torch
    import torch
    import transformers
    from transformers.utils import logging

    IS_OLD = transformers.__version__.startswith("4.")
    logging.set_verbosity_error()
except ModuleNotFoundError:
    pytestmark = pytest.mark.skip(reason="no transformers: scripts/setup --exporters")

AGREED = """
    llama mistral gemma2 gemma3_text gpt2 gpt_oss llama4_text deepseek_v3 qwen3_moe
    bert modernbert xlm-roberta t5 bart m2m_100 whisper
    clip vit siglip qwen2_vl paligemma gemma3
""".split()  # noqa: SIM905
REFUSED = "bloom mpt mpnet xglm longformer gpt_neox_japanese deepseek_v4 falcon".split()  # noqa: SIM905
# transformers before 5.0 drops SigLIP's mask if the implementation's name contains "flash".
OTHERS_FAULTS = {"siglip"}


@pytest.mark.parametrize("kind", [*AGREED, *REFUSED])
def test_a_type_agrees_or_is_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maskwise.torch, "LEAST_PRODUCTS", 0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        verdict = every_model.examine(kind)
    finally:
        torch.set_num_threads(threads)
    if IS_OLD and (verdict.unbuilt or kind in OTHERS_FAULTS):
        pytest.skip(f"transformers {transformers.__version__}: {kind} {verdict.unbuilt}")
    assert not verdict.unbuilt
    assert not verdict.faults
    if IS_OLD and len(verdict.refused) == 2:
        pytest.skip(f"transformers {transformers.__version__} refuses {kind}")
    is_refused = kind in REFUSED
    # Releases of transformers differ in which models support flash attention.
    assert len(verdict.refused) == 2 if is_refused else "maskwise: " not in str(verdict.refused)
    assert bool(verdict.attentions) == (not is_refused)


def test_a_wrong_attention_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maskwise.torch, "LEAST_PRODUCTS", 0)
    run = every_model.maskwise_transformers.run

    def without_rules(call: AttentionCall) -> object:
        return run(call._replace(attn_mask=maskwise.Mask()))

    monkeypatch.setattr(every_model.maskwise_transformers, "run", without_rules)
    verdict = every_model.examine("llama")
    assert any("differs" in one for one in verdict.faults)
    assert any("a masked token changes" in one for one in verdict.faults)
