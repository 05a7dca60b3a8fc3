"""Tests the plugin with missing, old or duplicate libraries, wrong load orders and settings.

Without --lane, runs the tests that need no oneDNN. With --lane and --prefix, runs the other tests.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
import unittest_report


@dataclass
class Setting:
    """The command line's arguments."""

    runner: str = ""
    plugin: str = ""
    binaries: Path = field(default_factory=Path)
    folder: Path = field(default_factory=Path)
    before_preload: str = ""
    lane: str = ""
    prefix: str = ""


SETTING = Setting()
RIGHT = {"select compile": "0", "select execute": "0", "select wrong": "0", "relu wrong": "0"}
ID = re.compile(r"\b1000\d\d\b")
LARGE = "200000"  # rows of the client's Select: enough work for several threads
Done = subprocess.CompletedProcess[str]


def run(
    command: list[str], variables: dict[str, str] | None = None, cwd: str | None = None
) -> Done:
    environment = {**os.environ, **(variables or {})}
    return subprocess.run(
        command, env=environment, cwd=cwd, capture_output=True, text=True, check=False, timeout=600
    )


def preload(*libraries: str) -> str:
    return ":".join(filter(None, (SETTING.before_preload, *libraries)))


def run_verbose(program: str, **variables: str) -> Done:
    return run([program], {"LD_PRELOAD": preload(), "MASKWISE_VERBOSE": "1", **variables})


def in_lane(
    program: str,
    *arguments: str,
    libraries: tuple[str, ...] = (),
    variables: dict[str, str] | None = None,
    cwd: str | None = None,
) -> Done:
    command = [SETTING.runner]
    if preload(*libraries):
        command += ["--preload", preload(*libraries)]
    path = shutil.which(program) or str(SETTING.binaries / program)
    return run([*command, SETTING.prefix, "--", path, *arguments], variables, cwd)


def client(*libraries: str, **variables: str) -> Done:
    return in_lane(f"client-{SETTING.lane}", libraries=libraries, variables=variables)


def in_prefix(name: str) -> Path:
    return next(Path(SETTING.prefix).rglob(name)).resolve()


@contextlib.contextmanager
def broken_libtbb() -> Iterator[str]:
    """Imitates a missing libtbb. Yields a folder for LD_LIBRARY_PATH with an unloadable libtbb."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "libtbb.so.12").touch()
        yield folder


@cache
def version() -> str:
    """Returns the version of the tested oneDNN, for example "3.13.2"."""
    return run([SETTING.runner, "--version", SETTING.prefix]).stdout.strip()


def words(done: Done) -> dict[str, str]:
    """`select compile 0` becomes {"select compile": "0"}."""
    pairs = (line.rsplit(" ", 1) for line in done.stdout.splitlines() if " " in line)
    return {pair[0]: pair[1] for pair in pairs}


def onednn_lines(done: Done, event: str, op: str) -> list[list[str]]:
    lines = [line.split(",") for line in done.stdout.splitlines() if "_verbose," in line]
    return [fields for fields in lines if event in fields and op in fields]


class Case(unittest.TestCase):
    def assert_alive(self, done: Done) -> None:
        self.assertGreaterEqual(done.returncode, 0, f"ended by a signal: {done.stderr}")

    def assert_right(self, done: Done, by_maskwise: bool = True) -> None:
        facts = words(done)
        self.assertEqual({key: facts.get(key) for key in RIGHT}, RIGHT, done.stdout + done.stderr)
        self.assertEqual(facts["select maskwise"], str(int(by_maskwise)), done.stderr)
        self.assertEqual(facts["relu maskwise"], "0")


class WithoutOnednn(Case):
    """Processes without oneDNN, or with a version that Maskwise does not know."""

    def graph_only(self, library_path: str) -> Done:
        program = str(SETTING.binaries / "graph_only")
        return run_verbose(program, LD_LIBRARY_PATH=library_path)

    def test_libdnnl_is_missing(self) -> None:
        done = self.graph_only("")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(words(done)["create"], "3")  # unimplemented
        self.assertEqual(done.stderr.count("no libdnnl with the Graph API found"), 1, done.stderr)

    def test_libdnnl_is_without_the_graph_api(self) -> None:
        done = self.graph_only(str(SETTING.folder / "without_graph"))
        self.assertEqual(words(done)["create"], "3")
        self.assertIn("oneDNN 2.1.0, which has no Graph API", done.stderr)
        info = run(
            [str(SETTING.binaries / "maskwise-info")],
            {"LD_LIBRARY_PATH": str(SETTING.folder / "without_graph")},
        )
        self.assertIn("(oneDNN 2.1.0)  without the Graph API\n", info.stdout)

    def test_libdnnl_of_an_unknown_major_version_is_left_alone(self) -> None:
        program = str(SETTING.binaries / "graph_only_secure")
        done = run_verbose(program)
        self.assertIn("inactive: only oneDNN 3.2 and later 3.x are known", done.stderr)

    def test_programs_without_onednn_are_unchanged(self) -> None:
        variables = {"LD_PRELOAD": preload(SETTING.plugin), "MASKWISE_VERBOSE": "2"}
        done = run(["/bin/echo", "hello"], variables)
        self.assertEqual((done.returncode, done.stdout), (0, "hello\n"))
        self.assertNotIn("maskwise", done.stderr)

    def test_a_static_program_is_unchanged(self) -> None:
        program = shutil.which("ldconfig", path="/usr/sbin:/sbin") or ""
        if not program or not re.search("static|not a dynamic", run(["ldd", program]).stdout):
            self.skipTest("no static program here")
        variables = {"LD_PRELOAD": preload(SETTING.plugin), "MASKWISE_VERBOSE": "2"}
        self.assertEqual(run([program, "-p"], variables).stdout, run([program, "-p"]).stdout)

    def test_programs_start_without_libtbb(self) -> None:
        with broken_libtbb() as folder:
            variables = {"LD_PRELOAD": preload(SETTING.plugin), "LD_LIBRARY_PATH": folder}
            done = run(["/bin/echo", "hello"], variables)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "hello\n", ""))

    def load_late(self, *libraries: Path) -> Done:
        variables = {"LD_PRELOAD": preload(SETTING.plugin), "MASKWISE_VERBOSE": "1"}
        return run([str(SETTING.binaries / "loader"), *map(str, libraries)], variables)

    def test_onednn_comes_late_under_another_name(self) -> None:
        """The plugin prints nothing at load. The first call finds oneDNN, although oneDNN was
        opened with RTLD_LOCAL."""
        done = self.load_late(SETTING.binaries.parent / "lib" / "late_client.so")
        self.assertEqual(words(done)["create"], "0", done.stderr)
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 1, lines)
        self.assertRegex(
            lines[0],
            r"^maskwise,load,.*oneDNN 3\.1\.0.*/libonednn_cpu_so\.so\.3 \(already loaded\).*,inact",
        )

    def test_onednn_that_is_not_called_through_the_plugin_is_reported(self) -> None:
        done = self.load_late(SETTING.folder / "other_name" / "libonednn_cpu_so.so.3")
        self.assertRegex(done.stderr, r"\Amaskwise,idle,\S+/libonednn_cpu_so\.so\.3 is in ")

    def test_functions_with_a_version_are_looked_up(self) -> None:
        library = SETTING.folder / "versioned" / "libdnnl.so.3"
        program = [str(SETTING.binaries / "lookup"), str(library)]
        alone = {name: str(library) for name in ("dlsym", "dlvsym", "other")}
        self.assertEqual(words(run(program)), {**alone, "unknown": "none"})
        done = words(run(program, {"LD_PRELOAD": preload(SETTING.plugin)}))
        plugin = {name: SETTING.plugin for name in ("dlsym", "dlvsym")}
        self.assertEqual(done, {**plugin, "unknown": "none", "other": str(library)})

    def test_no_library_is_initialized_again_at_the_end(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            debug = {"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": f"{folder}/debug"}
            preloads = {"LD_PRELOAD": preload(SETTING.plugin), "MASKWISE_VERBOSE": "1"}
            run(["/bin/echo", "hello"], {**preloads, **debug})
            text = "".join(path.read_text() for path in Path(folder).iterdir())
        initialized = re.findall(r"calling init: (\S+)", text)
        self.assertIn(SETTING.plugin, initialized)
        self.assertEqual(len(initialized), len(set(initialized)), initialized)

    def test_info_of_a_program_that_opens_onednn_late(self) -> None:
        done = run([str(SETTING.binaries / "maskwise-info"), "/bin/echo"])
        self.assertRegex(done.stdout, r"libdnnl\.so +not named")

    def test_set_user_id_programs_read_no_variables(self) -> None:
        if os.geteuid() != 0:
            self.skipTest("only root can make a set-user-id copy and change its user")
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o755)
            copy = shutil.copy(SETTING.binaries / "graph_only_secure", folder)
            variables = {**os.environ, "MASKWISE_VERBOSE": "1"}
            plain = run_verbose(copy)
            self.assertIn("maskwise,load", plain.stderr)
            Path(copy).chmod(stat.S_ISUID | 0o755)
            done = subprocess.run(
                [copy], env=variables, user=65534, capture_output=True, text=True, check=False
            )
        if words(done).get("secure") != "1":
            self.skipTest(f"set-user-id has no effect here: {done.stderr.strip()}")
        self.assertNotIn("maskwise,load", done.stderr)


class LaneCase(Case):
    """Tests that need --lane."""


class Loading(LaneCase):
    """Ways to load the plugin and oneDNN into a process."""

    def test_preloaded(self) -> None:
        self.assert_right(client(SETTING.plugin))

    def test_linked_with_as_needed(self) -> None:
        self.assert_right(in_lane(f"client_linked-{SETTING.lane}"))

    def test_trap_03_as_needed_drops_libdnnl(self) -> None:
        done = in_lane(f"graph_only_as_needed-{SETTING.lane}", variables={"MASKWISE_VERBOSE": "1"})
        self.assertEqual(words(done)["create"], "0", done.stderr)
        self.assertEqual(words(done)["finalized"], "1")

    def test_trap_03_opened_with_rtld_local(self) -> None:
        library = str(SETTING.binaries.parent / "lib" / f"client_library-{SETTING.lane}.so")
        self.assert_right(in_lane("loader", library, libraries=(SETTING.plugin,)))
        linked = str(SETTING.binaries.parent / "lib" / f"client_library_linked-{SETTING.lane}.so")
        facts = words(in_lane("loader", linked))
        self.assertEqual({key: facts.get(key) for key in RIGHT}, RIGHT)

    def test_opened_under_another_name(self) -> None:
        library = SETTING.binaries.parent / "lib" / f"client_library-{SETTING.lane}.so"
        with tempfile.TemporaryDirectory() as folder:
            renamed = Path(folder) / "libonednn_cpu_so.so"
            renamed.symlink_to(in_prefix("libdnnl.so"))
            done = in_lane(
                "loader",
                str(renamed),
                str(library),
                libraries=(SETTING.plugin,),
                variables={"MASKWISE_VERBOSE": "1"},
            )
        self.assert_right(done)
        self.assertRegex(done.stderr, r"maskwise,load,.*/libonednn_cpu_so\.so \(already loaded\)")

    def test_a_large_select_finds_the_threads_of_libtbb(self) -> None:
        if "libtsan" in SETTING.before_preload:
            self.skipTest("with ThreadSanitizer, Maskwise runs on std::thread")
        done = client(SETTING.plugin, CLIENT_ROWS=LARGE, MASKWISE_VERBOSE="1")
        self.assert_right(done)
        self.assertEqual(done.stderr.count("maskwise,threads,libtbb /"), 1, done.stderr)
        self.assertNotIn("threads", client(SETTING.plugin, MASKWISE_VERBOSE="1").stderr)

    def test_a_large_select_without_libtbb(self) -> None:
        if any(Path(SETTING.prefix).rglob("libtbb.so.12")):
            self.skipTest("this oneDNN brings its own libtbb")
        with broken_libtbb() as folder:
            alone = client(LD_LIBRARY_PATH=folder)
            done = client(SETTING.plugin, CLIENT_ROWS=LARGE, LD_LIBRARY_PATH=folder)
        if not words(alone):
            self.skipTest("this oneDNN needs libtbb itself")
        self.assert_right(done)
        self.assertEqual(done.stderr.count("the calling thread works alone"), 1, done.stderr)
        self.assertIn(f"{folder}/libtbb.so.12", done.stderr)

    def test_linked_after_libdnnl(self) -> None:
        alone, linked_after = client(), in_lane(f"client_after-{SETTING.lane}")
        self.assertEqual(linked_after.stdout, alone.stdout)
        self.assertEqual(linked_after.stderr.count("maskwise: loaded, but"), 1, linked_after.stderr)
        self.assertIn("link maskwise_onednn before dnnl", linked_after.stderr)

    def test_a_second_copy_of_the_plugin_stays_inactive(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            second = shutil.copy(SETTING.plugin, Path(folder) / "libmaskwise_second.so")
            done = client(SETTING.plugin, str(second), MASKWISE_VERBOSE="1")
        self.assert_right(done)
        self.assertIn("loaded twice, this copy stays inactive", done.stderr)
        self.assertEqual(done.stderr.count("maskwise,claim"), 1, done.stderr)

    def test_an_older_libtbb_first(self) -> None:
        """With Debian's libtbb first, results stay right and the load line names this libtbb."""
        libraries = [str(path) for path in Path("/usr/lib").glob("*/libtbb.so.12")]
        if not libraries:
            self.skipTest("the system has no libtbb.so.12")
        alone = client(libraries[0])
        done = client(libraries[0], SETTING.plugin, MASKWISE_VERBOSE="1")
        self.assertEqual(words(done)["engine"], words(alone)["engine"], done.stderr)
        self.assertIn(f"libtbb {libraries[0]}", done.stderr)
        if words(done)["engine"] == "0":
            self.assert_right(done)

    def test_a_libdnnl_newer_than_maskwise_knows(self) -> None:
        """oneDNN also compiles Maskwise's partitions, so that oneDNN's newer functions work."""
        older = str(SETTING.binaries.parent / "lib" / "libmaskwise_older.so")
        if words(client())["select supported"] == "0":
            facts = words(client(older))
            self.assertEqual(facts["select supported"], "0")  # this oneDNN does not support Select
            return
        self.assert_right(client(older))
        # trap_14 has host scalars, which oneDNN cannot compile. trap_04 needs functions of 3.13.
        minor = int(version().split(".")[1])
        left_out = "*trap_14*" if minor >= 13 else "*trap_14*:*trap_04*"
        done = in_lane(
            f"traps-{SETTING.lane}",
            f"--gtest_filter=-{left_out}",
            libraries=(older,),
            variables={"MASKWISE_EXPECT": "plugin"},
        )
        self.assertEqual(done.returncode, 0, done.stdout[-3000:])


class Environment(LaneCase):
    """Environment variables with arbitrary text."""

    NAMES = (
        *("MASKWISE_VERBOSE", "MASKWISE_DISABLE", "MASKWISE_MAX_ISA", "MASKWISE_STREAM_BYTES"),
        *("ONEDNN_VERBOSE", "DNNL_VERBOSE", "ONEDNN_GRAPH_DUMP", "ONEDNN_MAX_CPU_ISA"),
    )
    PIECES = ("", "0", "1", "2", "-1", "99999999999999999999", "all", "profile,", ",,,", "%s%n")

    def test_a_disabled_plugin_changes_no_output(self) -> None:
        alone, off = client(), client(SETTING.plugin, MASKWISE_DISABLE="1")
        self.assertEqual((alone.stdout, alone.stderr), (off.stdout, off.stderr))

    def test_a_disabled_plugin_reports_the_reason_if_verbose(self) -> None:
        off = client(SETTING.plugin, MASKWISE_DISABLE="1", MASKWISE_VERBOSE="1")
        self.assertEqual(off.stdout, client().stdout)
        lines = [line for line in off.stderr.splitlines() if line.startswith("maskwise")]
        self.assertEqual(len(lines), 1, off.stderr)
        self.assertRegex(lines[0], "^maskwise,load,.*,inactive: MASKWISE_DISABLE is set$")

    def test_variables_with_arbitrary_text(self) -> None:
        generator = random.Random(5)
        for _ in range(8 if SETTING.lane == "3.13" else 25):
            variables = {name: self.any_text(generator) for name in self.NAMES}
            with self.subTest(variables), tempfile.TemporaryDirectory() as folder:
                done = in_lane(
                    f"client-{SETTING.lane}",
                    libraries=(SETTING.plugin,),
                    variables=variables,
                    cwd=folder,
                )
                self.assert_alive(done)
                facts = words(done)
                self.assertIn(facts.get("select wrong", "0"), "0")
                self.assertEqual(facts.get("relu wrong"), "0")

    def any_text(self, generator: random.Random) -> str:
        if generator.random() < 0.5:
            return generator.choice(self.PIECES)
        letters = bytes(generator.randrange(1, 256) for _ in range(generator.randrange(300)))
        return os.fsdecode(letters)

    def test_unknown_instruction_set_is_a_status(self) -> None:
        done = client(SETTING.plugin, MASKWISE_MAX_ISA="sse9", MASKWISE_VERBOSE="1")
        self.assertEqual(words(done)["select compile"], "2")
        self.assertIn("sse9", done.stderr)
        self.assertEqual(words(done)["relu wrong"], "0")


class Diagnostics(LaneCase):
    """Verbose lines and dumps."""

    def test_maskwise_prints_a_load_line_and_a_claim_line(self) -> None:
        done = client(SETTING.plugin, MASKWISE_VERBOSE="1")
        lines = [line for line in done.stderr.splitlines() if line.startswith("maskwise,")]
        self.assertEqual(len(lines), 2, lines)
        self.assertRegex(
            lines[0],
            rf"^maskwise,load,version .*,oneDNN {version()} (openmp|tbb|sequential|sycl),.*active$",
        )
        self.assertRegex(lines[1], r"^maskwise,claim,\d+,chosen,Select alone, oneDNN ")
        self.assertEqual(done.stdout, client(SETTING.plugin).stdout)

    def test_lines_in_onednns_format(self) -> None:
        alone = client(ONEDNN_VERBOSE="2")
        done = client(SETTING.plugin, ONEDNN_VERBOSE="2")
        for event in ("exec", "compile:cache_miss"):
            mine = onednn_lines(done, event, "chosen")
            self.assertEqual(len(mine), 1, done.stdout)  # one execution prints one line
            self.assertEqual(mine[0][-2], "maskwise")
            model = onednn_lines(alone, event, "chosen")
            if not model:  # oneDNN 3.2 has no Select, and no field "v1" in its lines
                facts = SETTING.lane, len(mine[0]), mine[0][5]
                self.assertEqual(facts, ("3.2", 13, "misc_post_ops"), mine)
                continue
            self.assertEqual(len(mine[0]), len(model[0]), (mine[0], model[0]))
            self.assertEqual(mine[0][:-3], model[0][:-3])  # all but kernel, backend and time

    def test_level_1_has_no_compile_lines(self) -> None:
        done = client(SETTING.plugin, ONEDNN_VERBOSE="1")
        self.assertEqual(len(onednn_lines(done, "exec", "chosen")), 1)
        self.assertEqual(onednn_lines(done, "compile:cache_miss", "chosen"), [])

    def assert_kinds(
        self, done: subprocess.CompletedProcess[str], execs: int, creates: int
    ) -> None:
        self.assertEqual(len(onednn_lines(done, "exec", "chosen")), execs, done.stdout)
        self.assertEqual(len(onednn_lines(done, "compile:cache_miss", "chosen")), creates)

    def test_words_choose_the_kinds_of_lines(self) -> None:
        kinds = {"profile_exec": (1, 0), "profile_create": (0, 1), "none": (0, 0), "all": (1, 1)}
        for word, (execs, creates) in {**kinds, "1,profile_create": (1, 1)}.items():
            with self.subTest(word):
                self.assert_kinds(client(SETTING.plugin, DNNL_VERBOSE=word), execs, creates)

    def test_the_client_may_choose_the_level(self) -> None:
        for level, (execs, creates) in {"0": (0, 0), "1": (1, 0), "2": (1, 1)}.items():
            before = "2" if level == "0" else "0"
            done = client(SETTING.plugin, ONEDNN_VERBOSE=before, CLIENT_SETS_VERBOSE=level)
            with self.subTest(level):
                self.assert_kinds(done, execs, creates)

    def dumped(self, mode: str, *libraries: str) -> list[tuple[str, str]]:
        """Returns names and texts of dumps, without ids: only oneDNN's compiles advance ids."""
        with tempfile.TemporaryDirectory() as folder:
            in_lane(
                f"client-{SETTING.lane}",
                libraries=libraries,
                variables={"ONEDNN_GRAPH_DUMP": mode},
                cwd=folder,
            )
            files = sorted(Path(folder).iterdir())
            return [(ID.sub("ID", file.name), ID.sub("ID", file.read_text())) for file in files]

    def test_trap_09_dumps_equal_onednns(self) -> None:
        for mode in ("graph", "subgraph", "graph,subgraph", "nothing"):
            alone, done = self.dumped(mode), self.dumped(mode, SETTING.plugin)
            with self.subTest(mode):
                self.assertEqual(sorted(alone), sorted(done))
        graph = self.dumped("graph", SETTING.plugin)
        kinds = [op["kind"] for _, text in graph for op in json.loads(text)["graph"]]
        self.assertNotIn("Wildcard", kinds)
        if graph:  # not every build of oneDNN writes dumps
            self.assertIn("Select", kinds)


def load_tests(
    _: unittest.TestLoader, suites: unittest.TestSuite, __: str | None
) -> unittest.TestSuite:
    wanted = LaneCase if SETTING.lane else WithoutOnednn
    return unittest.TestSuite(
        test for suite in suites for test in suite if isinstance(test, wanted)
    )


def parse_arguments() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("runner", "plugin"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("binaries", "folder"):
        parser.add_argument(f"--{name}", required=True, type=Path)
    for name in ("before-preload", "lane", "prefix"):
        parser.add_argument(f"--{name}", default="")
    arguments, rest = parser.parse_known_args()
    for name, value in vars(arguments).items():
        setattr(SETTING, name, value)
    sys.argv[1:] = rest


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    parse_arguments()
    unittest_report.main(verbosity=2)
