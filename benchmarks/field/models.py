"""Measures the models of scripts/bench transformers with Maskwise's attention, SDPA and eager
attention. Leaves out compiled and exported models."""

import sys
from collections.abc import Iterator

import torch

try:
    import language_models as suite
except ModuleNotFoundError as missing:
    sys.exit(f"no model was measured: {missing}")
import transformers
from table import save_table, shown
from token_models import MODELS, make
from worker import ROOT


def main() -> None:
    transformers.utils.logging.set_verbosity_error()
    versions = f"transformers {transformers.__version__}, PyTorch {torch.__version__}"
    done: list[list[str]] = []

    def rows() -> Iterator[list[str]]:
        for model in (one for one in MODELS if one.form == "eager"):
            for kind in ("float32", "bfloat16"):
                model_object = make(model, getattr(torch, kind))
                for length in model.lengths:
                    row = suite.row_of(
                        model, length, kind, *suite.measure(model, model_object, length)
                    )
                    done.append(row)
                    save_table(
                        ROOT / "build/bench", "transformers-part", versions, suite.HEAD, done
                    )
                    yield row

    with torch.inference_mode():
        table = shown(suite.HEAD, rows())
    save_table(ROOT / "build/bench", "transformers", versions, suite.HEAD, table)


if __name__ == "__main__":
    main()
