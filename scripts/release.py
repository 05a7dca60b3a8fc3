"""Writes SHA256SUMS and maskwise-VERSION.spdx.json for a release. Fails if the first heading of
CHANGELOG.md is not the version.

usage: release.py FOLDER
"""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHANGES = ROOT / "CHANGELOG.md"
# Projects that are compiled in or copied: name, licence (SPDX), files that contain them.
INSIDE = [
    ("highway", "Apache-2.0 OR BSD-3-Clause", "every library with kernels"),
    ("nanobind", "BSD-3-Clause", "maskwise._core of the wheels"),
    ("robin-map", "MIT", "maskwise._core of the wheels, as a part of nanobind"),
    ("oneTBB", "Apache-2.0", "the AArch64 wheels"),
]


def version() -> str:
    text = (ROOT / "include/maskwise/version.h").read_text()
    return ".".join(re.findall(r"#define MASKWISE_VERSION_\w+ (\d+)", text)[:3])


def versions_inside() -> dict[str, str]:
    def debian(package: str) -> str:
        command = ["dpkg-query", "-W", "-f", "${Version}", package]
        return subprocess.run(command, text=True, capture_output=True, check=True).stdout

    pins = (ROOT / "scripts/python.txt").read_text()
    nanobind = re.search(r"^nanobind==(.*)$", pins, re.MULTILINE)
    assert nanobind
    onetbb = debian("libtbb-dev")
    robin_map = f"as in nanobind {nanobind[1]}"
    return {
        "highway": debian("libhwy-dev"),
        "nanobind": nanobind[1],
        "robin-map": robin_map,
        "oneTBB": onetbb,
    }


def package(name: str, number: str, licence: str, comment: str) -> dict[str, object]:
    return {
        "SPDXID": f"SPDXRef-{name}",
        "name": name,
        "versionInfo": number,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": licence,
        "licenseDeclared": licence,
        "copyrightText": "NOASSERTION",
        "comment": comment,
    }


def sbom(folder: Path, sums: dict[str, str]) -> dict[str, object]:
    commit = subprocess.run(
        ["git", "log", "-1", "--format=%H %cI"],
        cwd=ROOT,
        text=True,
        capture_output=True,
        check=True,
    ).stdout.split()
    numbers = versions_inside()
    files = [
        {
            "SPDXID": f"SPDXRef-file-{i}",
            "fileName": f"./{name}",
            "checksums": [{"algorithm": "SHA256", "checksumValue": value}],
            "licenseConcluded": "Apache-2.0",
            "copyrightText": "NOASSERTION",
        }
        for i, (name, value) in enumerate(sums.items())
    ]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-maskwise")]
    relations += [("SPDXRef-maskwise", "CONTAINS", f"SPDXRef-{name}") for name, *_ in INSIDE]
    relations += [(str(file["SPDXID"]), "GENERATED_FROM", "SPDXRef-maskwise") for file in files]
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"maskwise-{version()}",
        "documentNamespace": f"urn:maskwise:{version()}:{commit[0]}",
        "creationInfo": {"created": commit[1], "creators": ["Tool: scripts/release"]},
        "packages": [
            package("maskwise", version(), "Apache-2.0", f"commit {commit[0]}"),
            *(
                package(name, numbers[name], licence, f"in {where}")
                for name, licence, where in INSIDE
            ),
        ],
        "files": files,
        "relationships": [
            {"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}
            for a, kind, b in relations
        ],
    }


def main() -> None:
    folder = Path(sys.argv[1])
    changes = CHANGES.read_text()
    first = re.search(r"^## (\S+)", changes, re.MULTILINE)
    if first is None or first[1] != version():
        sys.exit(f"scripts/release: CHANGELOG.md begins with {first and first[1]}, not {version()}")
    released = sorted(file for file in folder.iterdir() if file.suffix in {".whl", ".gz", ".deb"})
    sums = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in released}
    lines = [f"{value}  {name}\n" for name, value in sums.items()]
    (folder / "SHA256SUMS").write_text("".join(lines))
    text = json.dumps(sbom(folder, sums), indent=1) + "\n"
    (folder / f"maskwise-{version()}.spdx.json").write_text(text)


if __name__ == "__main__":
    main()
