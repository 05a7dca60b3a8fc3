"""maskwise-info PROGRAM reads the program, never runs it, and refuses what it cannot list."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
import unittest_report

INFO = COMPILER = ""
CREATES_A_FILE = '#include <stdio.h>\nint main(void) { return fopen("created", "w") == 0; }\n'
SAYS_SO = (
    '#include <unistd.h>\nunsigned la_version(unsigned v) { return write(1, "dnnl", 4) ? v : 0; }\n'
)
LOAD, DYNAMIC, INTERP = 1, 2, 3  # kinds of segments
DEBUG = 21  # a tag of dynamic sections


def segments(elf: bytes, kind: int) -> list[int]:
    """Where the program headers of this kind lie."""
    begin, count = struct.unpack_from("<Q", elf, 32)[0], struct.unpack_from("<H", elf, 56)[0]
    headers = range(begin, begin + 56 * count, 56)
    return [at for at in headers if struct.unpack_from("<I", elf, at)[0] == kind]


class Info(unittest.TestCase):
    folder: Path
    program: bytes

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.program = cls.compiled("dynamic").read_bytes()

    @classmethod
    def compiled(cls, name: str, *options: str, source: str = CREATES_A_FILE) -> Path:
        command = [COMPILER, "-x", "c", "-", "-o", str(cls.folder / name), *options]
        subprocess.run(command, input=source, text=True, check=True)
        return cls.folder / name

    def made(self, content: bytes, mode: int = 0o755) -> Path:
        file = self.folder / "program"
        file.unlink(missing_ok=True)
        file.write_bytes(content)
        file.chmod(mode)
        return file

    def info(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [INFO, *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            errors="replace",
        )
        self.assertFalse((self.folder / "created").exists(), "the program has run")
        return done

    def assert_refused(self, program: str | Path, *words: str) -> None:
        done = self.info(program)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertRegex(done.stderr, r"\Amaskwise-info: .*\n\Z")
        for word in words:
            self.assertIn(word, done.stderr)

    def patched(self, at: int, layout: str, *values: int) -> Path:
        content = bytearray(self.program)
        struct.pack_into(layout, content, at, *values)
        return self.made(bytes(content))

    def test_a_dynamic_program_is_listed_and_not_run(self) -> None:
        done = self.info("./dynamic")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("no oneDNN among them", done.stdout)

    def test_names_are_looked_for_in_path(self) -> None:
        self.assertIn("/ls, first one wins", self.info("ls").stdout)

    def test_a_static_program_is_refused_and_not_run(self) -> None:
        for options in (["-static"], ["-static-pie"]):
            with self.subTest(options):
                self.assert_refused(self.compiled("static", *options), "names no loader")

    def test_audit_libraries_are_not_run(self) -> None:
        library = self.compiled("audit.so", "-shared", "-fPIC", source=SAYS_SO)
        for option in ("--audit", "--depaudit"):
            with self.subTest(option):
                program = self.compiled("audited", f"-Wl,{option}={library}")
                self.assert_refused(program, "names an audit library")

    def test_what_is_no_program(self) -> None:
        (self.folder / "folder").mkdir()
        os.mkfifo(self.folder / "pipe")
        refused = {
            "./nowhere": "cannot open './nowhere': No such file",
            "./folder": "'./folder' is a directory",
            "./pipe": "is no regular file",
            self.made(self.program, 0o644): "is not executable",
        }
        for program, word in refused.items():
            with self.subTest(word):
                self.assert_refused(program, word)
        for content in (b"", b"#", b"\x7fEL", b"text\n", bytes(100), b"\x89PNG\r\n" * 50):
            with self.subTest(content):
                self.assert_refused(self.made(content), "is no ELF file")
        self.assert_refused(self.made(b"#!/bin/sh\necho > created\n"), "is a script")

    def test_programs_with_privileges(self) -> None:
        for mode in (0o4755, 0o2755):
            with self.subTest(oct(mode)):
                self.assert_refused(self.made(self.program, mode), "set-user-id", "LD_PRELOAD")

    def test_other_machines(self) -> None:
        for at, value in ((4, 1), (5, 2), (18, 3)):
            with self.subTest(at):
                self.assert_refused(self.patched(at, "<B", value), "another machine", "expected")
        self.assert_refused(self.patched(16, "<H", 1), "has ELF type 1")

    def test_headers_that_lie(self) -> None:
        load, interp = (segments(self.program, kind)[0] for kind in (LOAD, INTERP))
        dynamic = segments(self.program, DYNAMIC)[0]
        large = 2**64 - 8
        lies = {
            "has 0 program headers": (56, "<H", 0),
            "program headers of 57 bytes": (54, "<H", 57),
            "its program headers": (32, "<Q", large),
            "its segment": (load + 32, "<QQ", 2**40, 2**40),
            f"its segment, {large} bytes": (load + 32, "<QQ", large, large),
            "bytes at address 18446744073709551608": (load + 16, "<Q", large),
            "bytes at address 0, expected": (segments(self.program, LOAD)[1] + 16, "<Q", 0),
            "its loader's name": (interp + 32, "<Q", 2**63),
            "wants the loader ''": (interp + 32, "<Q", 0),
            "outside of its segments": (dynamic + 16, "<Q", large),
        }
        for words, patch in lies.items():
            with self.subTest(words):
                self.assert_refused(self.patched(*patch), words)

    def test_another_loader(self) -> None:
        name = struct.unpack_from("<Q", self.program, segments(self.program, INTERP)[0] + 8)[0]
        for text in (b"/bin/echo\0", b"/ld\x1b[31m\0", b"created\0"):
            with self.subTest(text):
                program = self.patched(name, f"<{len(text)}B", *text)
                self.assert_refused(program, "wants the loader", "expected /")
                self.assertNotIn("\x1b", self.info(program).stderr)

    def test_a_dynamic_section_without_an_end(self) -> None:
        dynamic, data = (segments(self.program, kind)[-1] for kind in (DYNAMIC, LOAD))
        begin, *_ = struct.unpack_from("<Q", self.program, dynamic + 8)
        end = sum(struct.unpack_from("<Q", self.program, data + at)[0] for at in (8, 32))
        content = bytearray(self.program)
        content[begin:end] = struct.pack("<Q", DEBUG) * ((end - begin) // 8)
        self.assert_refused(self.made(bytes(content)), "without an end")

    def test_programs_that_are_cut_off(self) -> None:
        last = max(
            sum(struct.unpack_from("<Q", self.program, at + part)[0] for part in (8, 32))
            for at in segments(self.program, LOAD)
        )
        for size in (4, 16, 63, 64, 65, 119, 500, 800, 4096, last - 1):
            with self.subTest(size):
                self.assert_refused(self.made(self.program[:size]), "is cut off")

    def test_random_bytes(self) -> None:
        """Whatever the bytes: an answer or one error, no crash, and nothing runs."""
        numbers = random.Random(1)
        for turn in range(150):
            content = bytearray(self.program)
            for _ in range(numbers.choice((1, 3, 30))):
                content[numbers.randrange(numbers.choice((64, 900, len(content))))] = (
                    numbers.randrange(256)
                )
            if turn % 3 == 0:
                content[64:] = numbers.randbytes(2000)
            with self.subTest(turn):
                self.assertIn(self.info(self.made(bytes(content))).returncode, (0, 1))

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
    given, sys.argv[1:] = parser.parse_known_args()
    INFO, COMPILER = given.info, shutil.which(given.compiler) or given.compiler
    unittest_report.main(verbosity=2)


if __name__ == "__main__":
    main()
