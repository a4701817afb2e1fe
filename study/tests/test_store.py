import os
import subprocess
import sys
from pathlib import Path

import pytest

from vace_ad.errors import InputError
from vace_ad.executors.store import BusyError
from vace_study.rows import Row
from vace_study.store import Store, read_rows


def row(seed, **changes):
    fields = {
        "method": "pca",
        "series": "002_MSL_id_1_Sensor_tr_120_1st_180",
        "seed": seed,
        "protocol": "tsb-ad",
        "status": "ok",
        "family": "MSL",
        "split": "eval",
        "config": "abc",
        "version": "0",
        "measures": {"VUS-PR": 0.1 + seed},
        "notes": ("a line\nand \u2028 another",),
    }
    return Row(**{**fields, **changes})


def test_rows_come_back_as_they_were(tmp_path):
    rows = [row(0), row(1, status="failed", error="x", measures={})]
    with Store(tmp_path / "new" / "run") as store:
        store.append(rows)
    assert read_rows(tmp_path / "new" / "run") == rows
    with Store(tmp_path / "new" / "run") as store:
        assert list(store.rows.values()) == rows
        store.append([row(2)])
    assert len(read_rows(tmp_path / "new" / "run")) == 3


def test_a_row_is_written_once_unless_it_replaces(tmp_path):
    with Store(tmp_path) as store:
        store.append([row(0, status="failed")])
        with pytest.raises(InputError, match="already"):
            store.append([row(0)])
        store.append([row(0)], replace=True)
    assert [each.status for each in read_rows(tmp_path)] == ["ok"]


def test_a_line_cut_anywhere_costs_only_itself(tmp_path):
    with Store(tmp_path) as store:
        store.append([row(0)])
        store.append([row(1)])
    whole = (tmp_path / "rows.jsonl").read_bytes()
    first = whole.index(b"\n") + 1
    for cut in [*range(first, len(whole), 9), len(whole) - 1]:
        (tmp_path / "rows.jsonl").write_bytes(whole[:cut])
        assert read_rows(tmp_path) == [row(0)]
        with Store(tmp_path) as store:
            assert list(store.rows) == [row(0).key]
            store.append([row(1)])
        assert (tmp_path / "rows.jsonl").read_bytes() == whole


def test_damage_in_the_middle_is_not_passed_over(tmp_path):
    with Store(tmp_path) as store:
        store.append([row(0), row(1)])
    content = (tmp_path / "rows.jsonl").read_bytes()
    (tmp_path / "rows.jsonl").write_bytes(b"{}\n" + content)
    with pytest.raises(InputError, match="line 1"):
        read_rows(tmp_path)
    with pytest.raises(InputError, match="line 1"), Store(tmp_path):
        pass
    (tmp_path / "rows.jsonl").write_bytes(content)
    with Store(tmp_path):  # the failed attempt has let go of the lock
        pass


def test_a_second_writer_is_refused_until_the_first_ends(tmp_path):
    code = (
        "import sys, time; from vace_study.store import Store\n"
        f"with Store({str(tmp_path)!r}):\n  print('in', flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout.readline() == "in\n"
        with pytest.raises(BusyError, match="another process is writing"), Store(tmp_path):
            pass
        assert not (tmp_path / "rows.jsonl").read_bytes()
    finally:
        other.kill()  # as rude as it gets: the lock goes with the process
        other.communicate()
    with Store(tmp_path) as store:
        store.append([row(0)])


def test_a_folder_without_a_run(tmp_path):
    with pytest.raises(InputError, match="holds no run"):
        read_rows(tmp_path)


def test_a_number_that_json_does_not_have_is_refused(tmp_path):
    with Store(tmp_path) as store:
        with pytest.raises(ValueError, match="JSON"):
            store.append([row(0, measures={"VUS-PR": float("nan")})])
        assert not store.rows
    assert read_rows(tmp_path) == []


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="lists open files as Linux does")
def test_a_run_that_cannot_be_read_leaves_nothing_open(tmp_path):
    (tmp_path / "rows.jsonl").write_text("not a row\n")
    with pytest.raises(InputError, match="not a row of a run"), Store(tmp_path):
        pass
    opened = [os.path.realpath(one) for one in Path("/proc/self/fd").iterdir()]
    assert not [one for one in opened if one.startswith(str(tmp_path))]
    with pytest.raises(OSError, match="Bad file descriptor"):
        Store(tmp_path).append([row(0)])
