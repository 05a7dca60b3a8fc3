"""The models of scripts/bench transformers: configurations and inputs."""

from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, GenerationConfig

NEW_TOKENS = 32  # tokens to generate
ByName = dict[str, Any]


@dataclass
class Model:
    name: str
    family: str
    lengths: tuple[int, ...]
    batch: int = 1
    config: ByName = field(default_factory=dict)
    kind: Any = AutoModel
    padding: str = ""  # masks the ends of sequences: up to half ("right"), random parts ("random")
    attention: str = "maskwise"  # or "maskwise_flash"
    form: str = "eager"  # or "compiled" by torch.compile, "exported" by torch.export

    def mask(self, length: int) -> torch.Tensor:
        mask = torch.ones(self.batch, length, dtype=torch.long)
        lengths = torch.full((self.batch,), length)
        if self.padding == "right":
            steps = torch.arange(self.batch)
            lengths -= length * steps // (2 * max(self.batch - 1, 1))
        if self.padding == "random":
            random = torch.Generator().manual_seed(3)
            lengths = torch.randint(length // 16, length + 1, (self.batch,), generator=random)
            lengths[0] = length
        for row, end in enumerate(lengths.tolist()):
            mask[row, end:] = 0
        return mask

    def inputs(self, length: int, dtype: torch.dtype) -> ByName:
        random = torch.Generator().manual_seed(2)
        if self.family == "vit":
            return {
                "pixel_values": torch.randn(self.batch, 3, 224, 224, generator=random).to(dtype)
            }
        ids = torch.randint(5, 999, (self.batch, length), generator=random)
        inputs: ByName = {"input_ids": ids, "attention_mask": self.mask(length)}
        if self.family == "whisper":
            states = torch.randn(self.batch, 1500, 512, generator=random).to(dtype)
            inputs = {"decoder_input_ids": ids, "encoder_outputs": (states,)}
        return inputs

    def own_inputs(self, length: int, dtype: torch.dtype) -> ByName:
        """Returns the inputs for Maskwise. For "maskwise_flash", the batch is packed."""
        inputs = self.inputs(length, dtype)
        if self.attention != "maskwise_flash":
            return inputs
        mask = inputs["attention_mask"]
        lengths = mask.sum(1)
        bounds = torch.cat([torch.zeros(1), lengths.cumsum(0)]).int()
        packed: ByName = {"input_ids": inputs["input_ids"][mask.bool()][None]}
        packed["position_ids"] = torch.cat([torch.arange(n) for n in lengths])[None]
        for side in ("q", "k"):
            packed[f"cu_seq_lens_{side}"] = bounds
            packed[f"max_length_{side}"] = int(lengths.max())
        return packed

    def tokens(self, answer: Any, length: int, form: str) -> torch.Tensor:
        """Returns the results of unmasked tokens, in the same order for every form."""
        states = answer if torch.is_tensor(answer) else answer[0]
        if not self.padding:
            return states.float()
        if form == "maskwise" and self.attention == "maskwise_flash":
            return states[0].float()
        return states[self.mask(length).bool()].float()


class Generating(torch.nn.Module):
    """Generates NEW_TOKENS tokens after a prompt, with one forward pass per token."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def set_attn_implementation(self, name: str) -> None:
        self.model.set_attn_implementation(name)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        settings = GenerationConfig(max_new_tokens=NEW_TOKENS, do_sample=False, pad_token_id=0)
        settings.eos_token_id = None
        return self.model.generate(
            input_ids, attention_mask=attention_mask, generation_config=settings
        )


GEMMA: ByName = {
    "hidden_size": 640,
    "intermediate_size": 2048,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 256,
    "sliding_window": 512,
    "vocab_size": 1000,
}
NO_CACHE = GEMMA | {"use_cache": False}  # torch.export has no type for the cache
QWEN: ByName = {
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 4,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 1000,
}
BERT: ByName = {"num_hidden_layers": 4, "vocab_size": 1000}
MINILM: ByName = {"hidden_size": 384, "intermediate_size": 1536, "vocab_size": 1000}
MINILM |= {"num_hidden_layers": 6, "num_attention_heads": 12}
EMBEDDING_GEMMA = GEMMA | {"hidden_size": 768, "intermediate_size": 1152, "num_attention_heads": 3}
EMBEDDING_GEMMA |= {"use_bidirectional_attention": True, "max_position_embeddings": 2048}
WHISPER: ByName = {"d_model": 512, "decoder_layers": 6, "decoder_attention_heads": 8}
WHISPER |= {"decoder_ffn_dim": 2048, "encoder_layers": 1, "encoder_attention_heads": 8}
WHISPER |= {"vocab_size": 1000, "decoder_start_token_id": 1}
MODERN: ByName = {"num_hidden_layers": 6, "vocab_size": 1000, "max_position_embeddings": 8192}

# Published models with fewer layers and, to save memory, a smaller vocabulary.
MODELS = (
    Model(
        "ModernBERT-base, 6 layers",
        "modernbert",
        (16, 64, 256, 1024, 2048, 4096, 8192),
        config=MODERN,
    ),
    Model(
        "ModernBERT-base, compiled",
        "modernbert",
        (16, 1024, 4096, 8192),
        config=MODERN,
        form="compiled",
    ),
    Model(
        "ModernBERT-base, exported",
        "modernbert",
        (16, 4096),
        config=MODERN,
        form="exported",
    ),
    Model("Gemma 3 270M, compiled", "gemma3_text", (2048,), config=GEMMA, form="compiled"),
    Model("Gemma 3 270M, exported", "gemma3_text", (2048,), config=NO_CACHE, form="exported"),
    Model("EmbeddingGemma, 6 layers", "gemma3_text", (256, 2048), config=EMBEDDING_GEMMA),
    Model("Gemma 3 270M, 6 layers", "gemma3_text", (16, 512, 2048, 4096), config=GEMMA),
    Model("Qwen 3 0.6B, 4 layers, padded", "qwen3", (128, 1024), 2, QWEN, padding="right"),
    Model(
        f"Qwen 3 0.6B, 4 layers, {NEW_TOKENS} new tokens", "qwen3", (16, 512), 1, QWEN, Generating
    ),
    Model("BERT-base, 4 layers, padded", "bert", (32, 128, 512), 8, BERT, padding="right"),
    Model("MiniLM, padded", "bert", (64, 256), 32, MINILM, padding="random"),
    Model(
        "MiniLM, packed",
        "bert",
        (64, 256),
        32,
        MINILM,
        padding="random",
        attention="maskwise_flash",
    ),
    Model(
        "BERT-base, packed", "bert", (128,), 32, BERT, padding="random", attention="maskwise_flash"
    ),
    Model("Whisper's decoder, base", "whisper", (64, 448), config=WHISPER),
    Model("ViT-base, 6 layers", "vit", (197,), 4, {"num_hidden_layers": 6}),
)


def make(model: Model, dtype: torch.dtype, **others: Any) -> Any:
    torch.manual_seed(1)
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    config = AutoConfig.for_model(model.family, **{**special, **model.config, **others})
    for name in ("cls_token_id", "sep_token_id"):
        if getattr(config, name, None) is not None:
            setattr(config, name, 3)
    if model.kind is Generating:
        return Generating(AutoModelForCausalLM.from_config(config).eval().to(dtype))
    return model.kind.from_config(config).eval().to(dtype)
