"""Tests programs that look up oneDNN's functions by a handle. Tests maskwise-info on processes.

Takes the arguments of test_surroundings.py, with --lane.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
import unittest_report
from test_surroundings import (
    SETTING,
    Done,
    LaneCase,
    in_lane,
    in_prefix,
    parse_arguments,
    preload,
    run,
    version,
    words,
)


class LookedUp(LaneCase):
    """A client that opens libdnnl itself and looks up each function by the handle."""

    def opens(self, *libraries: str, **variables: str) -> Done:
        """Runs the client with `libraries` preloaded."""
        return self.run_built_with("", *libraries, **variables)

    def run_built_with(self, suffix: str, *libraries: str, **variables: str) -> Done:
        file = {"CLIENT_OPENS": str(in_prefix("libdnnl.so")), "MASKWISE_VERBOSE": "1"}
        program = f"client_opens{suffix}-{SETTING.lane}"
        return in_lane(program, libraries=libraries, variables={**file, **variables})

    def assert_accelerated(self, done: Done) -> None:
        self.assert_right(done)
        attention = {k: v for k, v in words(done).items() if k.startswith("attention")}
        if attention.get("attention partitions") == "1":
            self.assertEqual(attention["attention maskwise"], "1", done.stderr)
            self.assertEqual(attention["attention wrong"], "0")
        if int(version().split(".")[1]) >= 13:
            self.assertEqual(attention.get("attention partitions"), "1")

    def assert_untouched(self, done: Done) -> None:
        """The results must equal those without the plugin."""
        self.assertEqual(words(done), words(self.opens()), done.stderr)
        self.assertEqual(words(done)["select maskwise"], "0")

    def test_local_global_and_deepbind_handles_are_accelerated(self) -> None:
        for mode in ("", "g", "d"):
            with self.subTest(mode):
                self.assert_accelerated(self.opens(SETTING.plugin, CLIENT_MODE=mode))

    def test_another_namespace_is_left_alone(self) -> None:
        if "lib" in SETTING.before_preload:
            self.skipTest("a sanitizer does not work in a second namespace")
        alone = self.opens(CLIENT_MODE="n")
        if not words(alone):
            self.skipTest("this oneDNN does not run in a second namespace")
        done = self.opens(SETTING.plugin, CLIENT_MODE="n")
        self.assertEqual(words(done), words(alone), done.stderr)
        self.assertNotIn("maskwise,load", done.stderr)

    def test_a_disabled_plugin_changes_nothing(self) -> None:
        self.assert_untouched(self.opens(SETTING.plugin, MASKWISE_DISABLE="1"))

    def test_the_second_of_two_copies_is_left_alone(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            original = in_prefix("libdnnl.so")
            copy = shutil.copy(original, Path(folder) / "libother.so")
            done = self.opens(
                SETTING.plugin,
                CLIENT_OPENS_FIRST=str(original),
                CLIENT_OPENS=str(copy),
            )
        self.assert_untouched(done)
        self.assertEqual(done.stderr.count("is a second oneDNN"), 1, done.stderr)

    def test_other_preloads_may_call_or_wrap_dlsym(self) -> None:
        for name in ("preloaded", "wrapper"):
            other = str(SETTING.binaries.parent / "lib" / f"{name}.so")
            for order in ((other, SETTING.plugin), (SETTING.plugin, other)):
                with self.subTest(order):
                    done = self.opens(*order, WRAPPER_PRINTS="1")
                    self.assert_accelerated(done)
                    if name == "wrapper":
                        self.assertRegex(done.stderr, r"wrapper: [1-9]\d* lookups")

    def test_programs_with_a_sanitizer_are_accelerated(self) -> None:
        """A sanitizer's runtime looks up functions before its strcmp and dl_iterate_phdr work."""
        if SETTING.before_preload:
            self.skipTest("the plugin itself has a sanitizer")
        for sanitizer in ("address", "thread"):
            with self.subTest(sanitizer):
                # The loader of newer Debian releases leaks memory.
                done = self.run_built_with(
                    f"_{sanitizer}", SETTING.plugin, ASAN_OPTIONS="detect_leaks=0"
                )
                self.assert_accelerated(done)


class FirstLookup(unittest.TestCase):
    def test_a_constructor_looks_up_during_a_threads_first_lookup(self) -> None:
        """The constructor holds the loader's lock, which the thread needs."""
        library = str(SETTING.folder / "versioned" / "libdnnl.so.3")
        constructed = str(SETTING.binaries.parent / "lib" / "constructed.so")
        program = [str(SETTING.binaries / "lookup_race"), library, constructed]
        variables = {"LD_PRELOAD": preload(SETTING.plugin), "CONSTRUCTED_OPENS": library}
        done = run(program, variables)
        self.assertEqual(done.stdout, "constructed 1\nslow 1, both 1\n", done)
        self.assertRegex(done.stderr, "maskwise: a lookup in .* is left to oneDNN")


class Info(LaneCase):
    """maskwise-info on a program and on a running process."""

    def test_info(self) -> None:
        text = in_lane("maskwise-info", libraries=(SETTING.plugin,)).stdout
        self.assertIn(f"in front: {SETTING.plugin}", text)
        self.assertRegex(text, rf"libdnnl +{SETTING.prefix}/.*\(oneDNN {version()}\)")
        self.assertRegex(text, r"libtbb +/")
        self.assertRegex(text, r"kernels +(amx|avx512|avx2|sse4|scalar)")
        self.assertIn("not in front", in_lane("maskwise-info").stdout)

    def test_info_of_a_program(self) -> None:
        done = in_lane("maskwise-info", str(SETTING.binaries / f"client_linked-{SETTING.lane}"))
        for name in ("libmaskwise_onednn", "libdnnl"):
            self.assertRegex(done.stdout, rf"{name}\.so +named")

    def state_of(self, *libraries: str, **variables: str) -> str:
        """Runs maskwise-info on a client that waits after its work."""
        command = [SETTING.runner, "--preload", preload(*libraries), SETTING.prefix, "--"]
        command.append(str(SETTING.binaries / f"client-{SETTING.lane}"))
        environment = {**os.environ, **variables, "CLIENT_WAITS": "1"}
        with subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout and process.stdin
            while (line := process.stdout.readline()) and not line.startswith("waits"):
                pass
            pid = line.split()[-1]
            state = run([str(SETTING.binaries / "maskwise-info"), pid]).stdout
            process.stdin.close()
        return state

    def test_info_of_a_process(self) -> None:
        state = self.state_of(SETTING.plugin)
        self.assertRegex(state, rf"plugin +{SETTING.plugin}\n")
        self.assertRegex(state, rf"libdnnl +{SETTING.prefix}/")
        self.assertRegex(state, rf"state +active, oneDNN {version()}\n")
        disabled = self.state_of(SETTING.plugin, MASKWISE_DISABLE="1")
        self.assertRegex(disabled, "state +inactive: MASKWISE_DISABLE is set")


if __name__ == "__main__":
    parse_arguments()
    unittest_report.main(verbosity=2)
