#!/usr/bin/env python3
"""Formats the cases of benchdnn_inputs/, with one line per operator and per tensor. --check writes
nothing and fails if a case is formatted differently."""

import json
import re
import sys
from pathlib import Path

faults = 0
for path in Path(__file__).resolve().parent.parent.glob("benchdnn_inputs/*/*.json"):
    text = re.sub(r' ?(\{"id": \d+, "name")', r"\n  \1", json.dumps(json.loads(path.read_text())))
    text = re.sub(r' ?(\{"id": \d+, "dtype")', r"\n    \1", text)
    text = text.replace(' "outputs"', '\n   "outputs"') + "\n"
    if "--check" not in sys.argv:
        path.write_text(text)
    elif path.read_text() != text:
        faults += 1
        print(f"{path}: not as scripts/format_cases.py writes it")
sys.exit(faults > 0)
