"""Tests maskwise-info with processes and files. maskwise-info must never run a file."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
import unittest_report

INFO = COMPILER = ""
CREATES_A_FILE = '#include <stdio.h>\nint main(void) { return fopen("created", "w") == 0; }\n'


class Info(unittest.TestCase):
    folder: Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))

    def compiled(self, name: str, *options: str) -> Path:
        command = [COMPILER, "-x", "c", "-", "-o", str(self.folder / name), *options]
        subprocess.run(command, input=CREATES_A_FILE, text=True, check=True)
        return self.folder / name

    def info(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [INFO, *arguments], cwd=self.folder, capture_output=True, text=True, check=False
        )
        self.assertFalse((self.folder / "created").exists(), "the program has run")
        return done

    def test_a_program_is_read_and_not_run(self) -> None:
        for options in ([], ["-static"], ["-static-pie"]):
            with self.subTest(options):
                done = self.info(self.compiled("program", *options))
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertRegex(done.stdout, r"libdnnl\.so +not named")
                self.assertIn("maskwise,load", done.stdout)

    def test_files_that_are_no_programs(self) -> None:
        (self.folder / "folder").mkdir()
        os.mkfifo(self.folder / "pipe")
        (self.folder / "empty").touch()
        (self.folder / "script").write_text("#!/bin/sh\necho > created\n")
        for name in ("nowhere", "folder", "pipe", "empty", "script"):
            with self.subTest(name):
                done = self.info(f"./{name}")
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertEqual(
                    done.stderr, f"maskwise-info: './{name}' is not a readable ELF file\n"
                )

    def test_a_process_without_the_plugin(self) -> None:
        done = self.info(str(os.getpid()))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"\Aplugin +not loaded\nlibdnnl +not loaded\n\Z")

    def test_a_process_that_does_not_exist(self) -> None:
        done = self.info("419430499")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("/maps: No such file", done.stderr)

    def test_wrong_usage(self) -> None:
        for arguments in (("a", "b"), ("--list",)):
            done = self.info(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("maskwise-info PROGRAM", done.stderr)


def main() -> None:
    global INFO, COMPILER
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("info", "compiler"):
        parser.add_argument(f"--{name}", required=True)
    arguments, sys.argv[1:] = parser.parse_known_args()
    INFO, COMPILER = arguments.info, shutil.which(arguments.compiler) or arguments.compiler
    unittest_report.main(verbosity=2)


if __name__ == "__main__":
    main()
