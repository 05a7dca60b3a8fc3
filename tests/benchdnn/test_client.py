"""Tests maskwise-bench as a program: verdicts, exit statuses, planted faults, reports."""

from __future__ import annotations

import json
import re
import tempfile
import unittest
from pathlib import Path
from typing import Any, ClassVar

from client_process import ADD, INPUTS, SELECT, SETUP, SUBTRACT, case, main, needs_plugin, run


class CommandLine(unittest.TestCase):
    def test_an_input_fault_prints_one_line_and_exits_with_2(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            broken = Path(folder) / "broken.json"
            broken.write_text('{"graph": [{"id": 0}]}')
            for arguments in (
                ["--fast"],
                [],
                ["--mode=Z", ADD],
                ["--case=nowhere.json"],
                ["--batch=nowhere"],
                [f"--case={broken}"],
                ["--op-attrs=7:mode:none", ADD],
                ["--in-shapes=0:2*ab+1*", ADD],
                ["--threads=1000000", ADD],
                [ADD, "--mode=P"],
                ["--report=/no/such/folder/x.json", ADD],
            ):
                with self.subTest(arguments):
                    outcome = run(*arguments)
                    self.assertEqual(outcome.status, 2, outcome)
                    self.assertRegex(outcome.err, r"\Amaskwise-bench: [^\n]+\n\Z")

    def test_a_batch_file_of_onednns_driver_runs(self) -> None:
        """Paths are relative to the parent of the batch's folder. The cases cover
        missing attributes, a layout without a shape, an unknown tensor and an unreadable option.
        """
        with tempfile.TemporaryDirectory() as folder:
            graph = json.loads((INPUTS / "op/add.json").read_text())
            del graph["graph"][0]["attrs"]
            cases, batch = Path(folder) / "op/f32", Path(folder) / "op/harness_f32"
            cases.mkdir(parents=True)
            (cases / "add.json").write_text(json.dumps(graph))
            batch.write_text(
                "--reset --in-shapes=0:*abdc+9:2x3 --case=op/f32/add.json\n"
                "--reset --in-shapes=0:2*abc:3 --case=op/f32/add.json\n"
                "--reset --case=op/f32/add.json"
            )
            outcome = run(f"--batch={batch}")
        self.assertEqual(outcome.status, 0, outcome)
        self.assertEqual(outcome.counts, (3, 2, 1, 0), outcome)
        self.assertIn("--in-shapes: ignored: no tensor 9\n", outcome.err)
        self.assertRegex(outcome.out, r"1:SKIPPED \(\S+add.json: 'abc:3' is not a number\)")

    def test_help_has_an_example_for_every_flag(self) -> None:
        outcome = run("--help")
        self.assertEqual(outcome.status, 0)
        flags = re.findall(r"^  --([a-z-]+)", outcome.out, re.MULTILINE)
        self.assertGreater(len(flags), 25)
        self.assertEqual(outcome.out.count("example: "), len(flags))

    def test_a_repro_line_can_be_pasted_back(self) -> None:
        first = run("--in-shapes=0:2x8x24x40*abdc+1:24x1", "--dt=f32", ADD)
        line = next(x for x in first.out.splitlines() if "__REPRO: " in x)
        repro = line.split("__REPRO: ")[1]
        self.assertIn("--in-shapes=0:2x8x24x40*abdc+1:24x1", repro)
        second = run(*repro.split())
        self.assertIn(f"__REPRO: {repro}\n", second.out)

    def test_list_runs_nothing(self) -> None:
        outcome = run("--mode=L", ADD, SELECT)
        self.assertEqual(outcome.status, 0)
        self.assertIn("1:LISTED __REPRO: --mode=L", outcome.out)
        self.assertIn("no library was used", outcome.out)

    def test_verbose_prints_the_rewritten_graph_as_a_case(self) -> None:
        outcome = run("-v7", "--in-shapes=0:3x5+1:5", "--mode=L", ADD)
        text = outcome.out[outcome.out.index("{\n") : outcome.out.rindex("}\n") + 2]
        with tempfile.TemporaryDirectory() as folder:
            again = Path(folder) / "again.json"
            again.write_text(text)
            self.assertEqual(run(f"--case={again}").status, 0)


class Verdicts(unittest.TestCase):
    def test_a_right_case_passes(self) -> None:
        outcome = run(ADD)
        self.assertEqual(outcome.status, 0, outcome)
        self.assertEqual(outcome.counts, (1, 1, 0, 0))

    def test_an_operator_the_library_lacks_is_skipped_with_its_name(self) -> None:
        outcome = run(case("op/gen_index.json"))
        self.assertEqual(outcome.status, 0)
        if SETUP.minor < 7:
            self.assertRegex(outcome.out, r"0:SKIPPED \(GenIndex needs oneDNN 3.7")
        else:
            self.assertEqual(outcome.counts[1], 1)

    def test_an_unexpected_status_fails(self) -> None:
        outcome = run("--in-shapes=0:3+1:4", ADD)
        self.assertEqual(outcome.status, 1)
        self.assertRegex(outcome.out, r"0:(FAILED|INVALID_ARGUMENTS) \(dnnl_graph_\w+ returned")

    def test_an_expected_status_passes_and_success_in_its_place_fails(self) -> None:
        refused = run("--expect=invalid_graph_op", "--dt=0:s8", ADD)
        self.assertEqual(refused.counts[1], 1, refused)
        accepted = run("--expect=invalid_graph_op", ADD)
        self.assertRegex(accepted.out, r"0:FAILED \(expected invalid_graph_op, but every call")

    def test_a_partition_count_is_checked(self) -> None:
        self.assertRegex(run("--expected-n-partitions=2", ADD).out, "expected 2 partitions, got 1")
        self.assertEqual(run("--expected-n-partitions=0", ADD).status, 0)

    def test_the_owner_is_checked(self) -> None:
        self.assertRegex(run("--owner=maskwise", ADD).out, "FAILED .*executed by oneDNN")
        self.assertEqual(run("--owner=onednn", ADD).status, 0)

    def test_the_owner_is_checked_with_the_plugin(self) -> None:
        needs_plugin(self)
        self.assertEqual(run("--owner=maskwise", SELECT, plugin=True).status, 0)
        self.assertRegex(run("--owner=onednn", SELECT, plugin=True).out, "executed by Maskwise")

    def test_a_dumped_graph_reads_back(self) -> None:
        needs_plugin(self)
        with tempfile.TemporaryDirectory() as folder:
            dump = Path(folder)
            run(SELECT, plugin=True, cwd=dump, env={"ONEDNN_GRAPH_DUMP": "graph"})
            files = sorted(dump.glob("graph-*.json"))
            if not files:
                self.skipTest("this oneDNN was built without graph dumps")
            for file in files:
                outcome = run(f"--case={file}", plugin=True)
                self.assertEqual(outcome.counts[1], 1, f"{file}: {outcome}")


class Dumps(unittest.TestCase):
    """MASKWISE_DUMP writes the same graphs as ONEDNN_GRAPH_DUMP, plus each operator's library."""

    CASES = (SELECT, *map(case, ("pattern/matmul_select.json", "pattern/causal_softmax.json")))

    def setUp(self) -> None:
        needs_plugin(self)
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def dump(self, *arguments: str) -> list[Path]:
        env = {"MASKWISE_DUMP": str(self.folder), "ONEDNN_GRAPH_DUMP": "graph"}
        once = ("--mode=P", "--fix-times-per-prb=1", "--expected-n-partitions=0")
        outcome = run(*once, *arguments, plugin=True, cwd=self.folder, env=env)
        self.assertEqual((outcome.status, outcome.err), (0, ""), outcome)
        return sorted(self.folder.glob("graph-*-[0-9].json"))

    def test_the_files_run_as_cases_and_name_the_library(self) -> None:
        owners = set()
        for file in self.dump(*self.CASES):
            selects = [op for op in operators(file) if op["kind"] == "Select"]
            owner = selects[0]["attrs"]["backend"]["value"]
            flags = (f"--owner={owner}", "--expected-n-partitions=0", f"--case={file}")
            self.assertEqual(run(*flags, plugin=True).counts, (1, 1, 0, 0), f"{file}: {owner}")
            owners.add(owner)
        self.assertIn("maskwise", owners)

    def test_the_graphs_equal_onednns_dumps(self) -> None:
        files = self.dump(*self.CASES)
        self.assertGreaterEqual(len(files), 1 if SETUP.minor < 7 else len(self.CASES))
        theirs = [operators(file) for file in self.folder.glob("graph-*-partitioning.json")]
        if not theirs:
            self.skipTest("this oneDNN was built without graph dumps")
        for file in files:
            ours = operators(file)
            self.assertTrue(any(is_same_graph(ours, other) for other in theirs), ours)

    def test_a_missing_folder_is_reported_in_a_line(self) -> None:
        missing = self.folder / "missing"
        outcome = run(SELECT, plugin=True, env={"MASKWISE_DUMP": str(missing)})
        self.assertEqual(outcome.status, 0)
        self.assertRegex(outcome.err, rf"\Amaskwise,dump,{missing}/graph-\d+-0.json,No such file")


def operators(file: Path) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads(file.read_text())["graph"]
    return sorted(listed, key=lambda op: op["id"])


def is_same_graph(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> bool:
    """Ignores `backend`, `partition_id` and the attributes that only oneDNN's dump has."""
    if len(ours) != len(theirs):
        return False
    for op, other in zip(ours, theirs, strict=True):
        attributes = {n: v for n, v in op["attrs"].items() if n not in ("backend", "partition_id")}
        if attributes != {name: other["attrs"].get(name) for name in attributes}:
            return False
        if any(op[part] != other[part] for part in ("id", "name", "kind", "inputs", "outputs")):
            return False
    return True


class Faults(unittest.TestCase):
    """The harness notices each fault that faults/faults.cpp plants."""

    EXPECTED: ClassVar[dict[str, str]] = {
        "wrong_element": r"FAILED \(tensor \d+: \[.*\(errors:1 ",
        "write_in_front": r"FAILED \(bytes around tensor",
        "write_past_end": r"ABORTED \(the client (was|ended) ",
        "write_input": r"FAILED \(input \d+ was written",
        "not_executed": r"FAILED \(tensor .*0x5a5a5a5a",
        "execute_fails": r"FAILED \(dnnl_graph_compiled_partition_execute returned runtime_error",
        "swapped_source": r"FAILED \(tensor ",
        "wrong_status": r"FAILED \(dnnl_graph_partition_compile returned runtime_error",
        "wrong_invalid": r"INVALID_ARGUMENTS \(dnnl_graph_partition_compile",
    }

    def demand(self, fault: str, pattern: str, *arguments: str, plugin: bool = False) -> None:
        with self.subTest(fault):
            outcome = run("--isolate", *arguments, plugin=plugin, fault=fault)
            self.assertRegex(outcome.out, f"0:{pattern}", outcome.err)
            self.assertEqual(outcome.status, 1)

    def test_without_a_fault_the_same_program_passes(self) -> None:
        self.assertEqual(run("--isolate", *SUBTRACT, fault="none").status, 0)

    def test_faults_in_an_operator_of_onednn_are_noticed(self) -> None:
        for fault, pattern in self.EXPECTED.items():
            self.demand(fault, pattern, *SUBTRACT)

    def test_faults_in_a_select_of_maskwise_are_noticed(self) -> None:
        needs_plugin(self)
        self.assertEqual(run("--isolate", SELECT, plugin=True, fault="none").status, 0)
        exact = {"wrong_bit": r"FAILED \(tensor 3: ", **self.EXPECTED}
        for fault, pattern in exact.items():
            self.demand(fault, pattern, SELECT, plugin=True)

    def test_a_write_between_the_elements_is_noticed(self) -> None:
        needs_plugin(self)
        gaps = "--in-shapes=3:2x3x4x5*120x40x10x2"
        self.assertEqual(run(gaps, SELECT, plugin=True, fault="none").status, 0)
        pattern = r"FAILED \(1 bytes between the elements of tensor 3"
        self.demand("write_between", pattern, gaps, SELECT, plugin=True)

    def test_one_wrong_element_of_an_attention_mask_is_noticed(self) -> None:
        """In every type, the tolerance of a long chain rejects a single wrong mask element."""
        if SETUP.minor < 8:
            self.skipTest("this oneDNN lacks SoftMax's mode")
        in_bf16 = [
            ["--dt=bf16", case("mha/gpt.json")],
            ["--dt=bf16", case("mha/bert.json")],
            [case("mha/bert_int8.json")],
            [case("mha/masked_bf16.json")],
        ]
        in_f32 = [["--dt=f32", case(f"mha/{name}.json")] for name in ("gpt", "bert")]
        for arguments in in_f32 + (in_bf16 if "bf16" in SETUP.types else []):
            self.demand("wrong_mask", "FAILED", "--expected-n-partitions=0", *arguments)

    def test_a_rounding_that_the_graph_lacks_is_noticed(self) -> None:
        """oneDNN's driver rejects a late SoftMax division that the oracle's tolerance accepts."""
        if SETUP.minor < 8:
            self.skipTest("this oneDNN lacks SoftMax's mode")
        for dt in sorted({"f32", "bf16"} & SETUP.types):
            causal = [f"--dt={dt}", case("mha/causal.json")]
            self.assertEqual(run(*causal, fault="none").status, 0)
            self.assertEqual(run("--fill=own", *causal, fault="late_division").status, 0)
            self.demand("late_division", r"FAILED \(by the driver's rule: tensor 12", *causal)
            self.demand("early_rounding", r"FAILED \(", *causal)

    def test_in_place_writes_to_the_buffer_of_src_0(self) -> None:
        needs_plugin(self)
        outcome = run("--in-place", SELECT, plugin=True, fault="not_executed")
        self.assertRegex(outcome.out, r"0:FAILED \(tensor 3")
        self.assertNotIn("0x5a5a5a5a", outcome.out)  # the fill of a separate buffer

    def test_a_status_other_than_the_expected_status_fails(self) -> None:
        invalid = "--in-shapes=0:4x5+1:4x5+2:4x5+3:5x4"
        pattern = r"FAILED \(expected invalid_shape, but dnnl_graph_partition_compile returned"
        if SETUP.minor >= 5:
            self.demand("wrong_invalid", pattern, "--expect=invalid_shape", invalid, SELECT)

    def test_a_wrong_partition_count_is_noticed(self) -> None:
        if SETUP.minor < 5:
            self.skipTest("oneDNN before 3.5 does not support Select")
        fused = case("pattern/matmul_select.json")
        self.assertEqual(run(fused, fault="none").status, 0)
        self.demand("partition_count", "FAILED .expected 1 partitions, got 2", fused)

    def test_a_crash_without_isolation_names_the_test(self) -> None:
        outcome = run(*SUBTRACT, fault="write_past_end")
        self.assertNotIn(outcome.status, (0, 1, 2))
        self.assertIn("subtract.json", outcome.err)

    def test_the_batch_continues_after_a_crash(self) -> None:
        outcome = run("--isolate", ADD, ADD, fault="write_past_end")
        self.assertEqual(outcome.counts[0], 2)
        self.assertIn("aborted:2", outcome.out)


class Results(unittest.TestCase):
    def test_the_report_repeats_the_verdicts(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.json"
            run(f"--report={report}", "--mode=CP", "--fix-times-per-prb=3", ADD, "--mode=L", SELECT)
            content = json.loads(report.read_text())
        self.assertEqual(content["summary"], {"PASSED": 1, "LISTED": 1})
        add, select = content["tests"]
        self.assertEqual(add["state"], "PASSED")
        self.assertEqual(add["perf"]["samples"], 3)
        self.assertEqual(add["perf"]["bytes"], 3 * 4 * 2 * 8 * 24 * 40)
        self.assertLessEqual(add["perf"]["min_ms"], add["perf"]["median_ms"])
        self.assertGreater(add["perf"]["first_ms"], 0)
        self.assertEqual(select["selects"][0]["shapes"], [[2, 3, 4, 5]] * 4)

    def test_performance_lines_follow_the_template(self) -> None:
        outcome = run("--mode=P", "--fix-times-per-prb=2", "--perf-template=%name%:%samples%", ADD)
        self.assertIn("add:2\n", outcome.out)
        self.assertNotIn("PASSED", outcome.out)
        self.assertIn("total perf: min(ms):", outcome.out)

    def test_cold_caches_are_slower(self) -> None:
        fits = "--in-shapes=0:512x512+1:512x512"  # 3 MiB, which the last-level cache holds
        # One thread, because waking a second thread takes as long as reading from memory.
        time = [
            "--mode=P",
            "--threads=1",
            "--perf-template=%-time%",
            "--fix-times-per-prb=40",
            fits,
        ]

        def best_ms(cache: str) -> float:
            return float(run(*time, f"--cold-cache={cache}", ADD).out.splitlines()[0])

        # A busy machine may hide the difference in one pair of runs, but not in six. Noise in
        # the best of 40 calls is far below 25 %.
        pairs = ((best_ms("all"), best_ms("none")) for _ in range(6))
        self.assertTrue(any(cold > 1.25 * warm for cold, warm in pairs))

    def test_a_case_passes_on_one_thread(self) -> None:
        self.assertEqual(run("--threads=1", ADD).status, 0)

    def test_requests_are_answered_line_by_line(self) -> None:
        flags = json.dumps(["--mode=P", "--fix-times-per-prb=1", ADD])
        outcome = run("--serve", stdin=f"run {flags}\ntime 4 1000\nsing\n")
        answers = [
            json.loads(line.split(" ", 1)[1])
            for line in outcome.out.splitlines()
            if line.startswith("maskwise-bench-answer ")
        ]
        self.assertEqual(answers[0]["result"]["state"], "PASSED")
        self.assertEqual(len(answers[1]["samples"]), 4)
        self.assertIn("unknown request", answers[2]["input_error"])


if __name__ == "__main__":
    main()
