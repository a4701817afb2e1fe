from vace_ad.fleet.entities import MachineRow
from vace_ad.fleet.incidents import with_vanished
from vace_ad.fleet.runner import ranked

MINUTE = 60 * 10**9


def row(machine: str, until: str | None, **more: object) -> MachineRow:
    return MachineRow(machine, "ok", rows=100, until=until, patience=6 * MINUTE, **more)  # type: ignore[arg-type]


def test_a_machine_that_stops_before_the_others_has_no_data() -> None:
    rows, (note,) = with_vanished(
        [
            row("gone", "2026-01-01T09:00:00"),
            row("late", "2026-01-01T11:54:00"),  # six rows: not longer than a gap that is bridged
            row("here", "2026-01-01T12:00:00"),
            row("untimed", None),
        ]
    )
    assert [one.vanished_since for one in rows] == ["2026-01-01T09:00:00", None, None, None]
    (event,) = rows[0].events
    assert (event["kind"], event["end_time"]) == ("no data", "2026-01-01T12:00:00")
    assert note == "no data up to the end of the others: gone since 2026-01-01 09:00"
    assert ranked(rows[::-1])[0].machine == "gone"


def test_offsets_of_zones_count() -> None:
    rows, notes = with_vanished(
        [row("berlin", "2026-01-01T13:00:00+01:00"), row("utc", "2026-01-01T12:00:00+00:00")]
    )
    assert not notes
    assert not any(one.events for one in rows)
