"""The tables of the documents that the attention suite leaves, and what it draws them from."""

import re
from collections.abc import Iterable

from attention_client import NEWEST_LANE
from attention_measured import OWN_ENGINE, Measured
from table import Cells, time_text, times_text

# The cases of README's table of attention, by what the suite calls them.
PLAIN = {
    "causal 1x12x512": "causal, 512",
    "causal 1x12x1024": "causal, 1024",
    "causal 1x12x2048": "causal, 2048",
    "causal 1x12x4096": "causal, 4096",
    "padding 1x12x1024": "padding, a quarter masked, 1024",
    "block-sparse 1x12x1024": "1 of 8 tiles kept, 1024",
    "no mask 1x12x1024": "no mask, 1024",
}
PLAIN_HEAD = {
    OWN_ENGINE: "Maskwise",
    "torch attn_mask": "PyTorch, mask given",
    "torch is_causal": "PyTorch, `is_causal`",
    "openvino": "OpenVINO",
    "onnxruntime": "ONNX Runtime",
    "onednn": "oneDNN alone",
    "maskwise": "oneDNN with Maskwise",
}


def ms_text(milliseconds: float | None) -> str:
    return time_text(milliseconds / 1e3 if milliseconds else None)


def times_of(measured: Measured) -> str:
    alone, own = measured.median("onednn"), measured.median("maskwise")
    return times_text(alone, own) if alone and own else "-"


def listed(texts: Iterable[str]) -> str:
    return ", ".join(texts) or "-"


def versions_of(every: Iterable[Measured]) -> list[str]:
    """Of the peers."""
    peer_versions = {
        f"{peer} {version}" for each in every for peer, version in each.versions.items()
    }
    return sorted(peer_versions)


def libraries_of(every: Iterable[Measured]) -> list[str]:
    return list(dict.fromkeys(measured.library for measured in every))


def attention_row(measured: Measured, other_lanes: list[Measured]) -> list[str]:
    share = measured.of_ceiling()
    parts = [measured.median(part) or 0.0 for part in ("before", "after")]
    best = {peer: milliseconds for peer, (_, milliseconds) in measured.peers().items()}
    same = [other for other in other_lanes if other.case == measured.case]
    return [
        measured.case,
        ms_text(measured.median("onednn")),
        ms_text(measured.median("maskwise")),
        times_of(measured),
        f"{share:.2f}" if share else "-",
        ms_text(sum(parts)),
        listed(f"{other.lane}: {times_of(other)}" for other in same),
        listed(f"{peer} {ms_text(milliseconds)}" for peer, milliseconds in best.items()),
    ]


def attention_table(every: list[Measured]) -> Cells:
    timed = [measured for measured in every if measured.times_faster() is not None]
    newest = [measured for measured in timed if measured.lane == NEWEST_LANE]
    others = [measured for measured in timed if measured.lane != NEWEST_LANE]
    head = ["case", "oneDNN alone", "with Maskwise", "times faster", "of its ceiling"]
    head += ["oneDNN's parts", "times faster on other lanes", "other implementations"]
    versions = listed([*libraries_of(newest), *versions_of(newest)])
    return versions, head, [attention_row(measured, others) for measured in newest]


def plain_row(text: str, measured: Measured) -> list[str]:
    fastest = {name: measured.fastest(name) for name in PLAIN_HEAD}
    # PyTorch without a mask has the one form.
    fastest["torch attn_mask"] = fastest["torch attn_mask"] or measured.fastest("torch no mask")
    others = [fastest[name] for name in PLAIN_HEAD if name not in (OWN_ENGINE, "maskwise")]
    own, least = fastest[OWN_ENGINE], min(filter(None, others), default=None)
    gain = f"{least / own:.2g} times" if own and least else "-"
    return [text, *map(ms_text, fastest.values()), gain]


def plain_table(every: list[Measured]) -> Cells:
    """Attention by everybody, with the gain over the fastest of the others."""
    by_case = {measured.case: measured for measured in every}
    named = {text: by_case.get(f"plain {name} f32") for name, text in PLAIN.items()}
    cases = {text: measured for text, measured in named.items() if measured}
    versions = listed([*libraries_of(cases.values()), *versions_of(cases.values())])
    head = ["mask, sequence", *PLAIN_HEAD.values(), "faster than the fastest other"]
    rows = [plain_row(text, measured) for text, measured in cases.items()]
    return f"f32, 12 heads of depth 64; {versions}", head, rows


def kept_table(every: list[Measured]) -> Cells:
    """Milliseconds by how much of the mask is kept."""
    found = {
        match[1]: measured
        for measured in every
        if (match := re.match(r"plain kept (\d+) % 1x12x2048 f32$", measured.case))
    }
    names = [name for name in PLAIN_HEAD if name not in ("torch is_causal", "onednn", "maskwise")]
    rows = []
    for percent, measured in found.items():
        times = [measured.fastest(name) for name in names]
        rows.append([percent, *(f"{spent:.4g}" if spent else "-" for spent in times)])
    head = ["kept %", *(PLAIN_HEAD[name].split(",")[0] for name in names)]
    return f"1x12x2048x64, f32; {listed(versions_of(found.values()))}", head, rows
