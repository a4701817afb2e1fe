from __future__ import annotations

from pathlib import Path

import pytest

from vace_ad.app.loading import load_table
from vace_ad.errors import InputError, TableReadError
from vace_ad.frames.read import read_table
from vace_ad.frames.read_options import ReadOptions

START = 1_767_225_600


def points(hosts: int = 1, n: int = 40) -> str:
    lines = ["# exported"]
    for i in range(n):
        for host in range(hosts):
            lines.append(
                rf"plant\ 4,host=h{host},site=north flow={i * i % 9 * 0.5},valve=t,"
                rf'count={i * 7 % 5}i,note="a, b=c" {(START + 10 * i) * 10**9}'
            )
    return "\n".join(lines) + "\n"


def test_fields_become_channels(tmp_path: Path) -> None:
    (tmp_path / "p.lp").write_text(points())
    frame, report = read_table(tmp_path / "p.lp")
    assert frame.columns == ["time", "host", "site", "flow", "valve", "count", "note"]
    assert report.format == "line protocol"
    assert frame["note"][0] == "a, b=c"
    loaded = load_table(tmp_path / "p.lp", ReadOptions())
    assert loaded.table.names == ("flow", "valve", "count")
    assert loaded.clock.step == 10 * 10**9
    assert loaded.table.values[3].tolist() == [0.0, 1.0, 1.0]


def test_several_hosts_are_recognised(tmp_path: Path) -> None:
    (tmp_path / "p.lp").write_text(points(hosts=3))
    with pytest.raises(InputError, match=r"3 series, told apart by 'host'; .*by='host'$"):
        load_table(tmp_path / "p.lp", ReadOptions())


def test_several_measurements_and_other_units_of_time(tmp_path: Path) -> None:
    text = "".join(f"cpu used={i} {START + i}\nmem used={2 * i} {START + i}\n" for i in range(9))
    (tmp_path / "p").write_text(text)
    frame, _ = read_table(tmp_path / "p")
    assert frame.columns == ["time", "cpu.used", "mem.used"]
    assert frame.height == 9
    assert frame["time"][1].year == 2026


def test_a_time_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "p.lp").write_text(points() + f"plant flow=1 {10**25}\n")
    with pytest.raises(TableReadError, match="not a time since 1970"):
        read_table(tmp_path / "p.lp")


def test_a_damaged_line(tmp_path: Path) -> None:
    (tmp_path / "p.lp").write_text(points() + "plant flow=\n")
    with pytest.raises(TableReadError, match="line 42 is not a point of line protocol"):
        read_table(tmp_path / "p.lp")


def test_points_that_each_have_a_field_of_their_own(tmp_path: Path) -> None:
    lines = (f"m f{i}=1 {1767225600 + i}" for i in range(3000))
    (tmp_path / "t.lp").write_text("\n".join(lines))
    with pytest.raises(TableReadError, match=r"3,000 rows × 3,000 columns.*max_size="):
        read_table(tmp_path / "t.lp", max_size="50MB")
