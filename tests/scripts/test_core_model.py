"""The model of more cores: the slower of memory and cores, and waking."""

import core_model
import pytest
from core_model import Machine, seconds


def test_the_slower_of_memory_and_cores_counts() -> None:
    giga = 1_000_000_000
    assert seconds(giga, Machine("few", 2, 100.0), 10.0) == pytest.approx(1 / 20 + 10e-6)
    assert seconds(giga, Machine("many", 64, 100.0), 10.0) == pytest.approx(1 / 100 + 10e-6)
    assert seconds(giga, Machine("one", 1, 100.0), 10.0) == pytest.approx(1 / 10)


def test_pages_on_one_socket_leave_the_other_sockets_memory_idle() -> None:
    *_, one_socket, on_one, on_both = core_model.machines(40.0, 60.0, 2)
    assert on_one.memory_gbs == one_socket.memory_gbs < on_both.memory_gbs
    assert on_both.memory_gbs <= 2 * one_socket.memory_gbs


def test_the_rates_are_those_of_the_last_copies() -> None:
    copies = {"limit, one thread": 40.0, "limit, all threads": 50.0}
    text, head, rows = core_model.table(copies, threads=2)
    assert "not measured: 40 GB/s a core" in text
    assert head[:3] == ["moved", "1 thread here", "2 threads here"]
    assert rows[0][:3] == ["64 MiB", "1.68 ms", "1.35 ms"]
