from __future__ import annotations

from vace_ad.caller import command_line, option


def test_fixes_are_named_in_the_callers_words() -> None:
    assert option("sort", True) == "sort=True"
    assert option("time_zone", "UTC") == "time_zone='UTC'"
    assert option("time_column") == "time_column"
    with command_line():
        assert option("sort", True) == "--sort"
        assert option("time_zone", "UTC") == "--time-zone UTC"
        assert option("time_column") == "--time-column"
    assert option("sort", True) == "sort=True"
