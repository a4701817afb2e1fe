"""`vace import`: data and settings of other services, as this package takes them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from vace_ad.cli.options import parameters
from vace_ad.cli.output import Output, OutputOptions

import_app = typer.Typer(help="Import data and settings of another service.", no_args_is_help=True)


@import_app.callback()
def _import() -> None:
    """Import data and settings of another service."""


@parameters
def lookout_command(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="Folder of the CSV files of one asset, with or without a subfolder per component.",
        ),
    ],
    *,
    out: Annotated[Path, typer.Option(help="Folder for the table and the labels.")],
    labels: Annotated[
        Path | None,
        typer.Option(help="CSV of start,end. Default: the files in FOLDER/label-data."),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            help="Output of `aws lookoutequipment describe-model`: gives the off condition, the "
            "sampling rate and the end of training. Default: FOLDER/model.json, if it exists."
        ),
    ] = None,
    shown: OutputOptions,
) -> None:
    """Import an asset of Amazon Lookout for Equipment, and print the next command.

    Examples:

    vace import lookout pump-7/ --out pump-7-vace/
    """
    from vace_ad.app.lookout import read_asset
    from vace_ad.app.results import write_frame, writing
    from vace_ad.frames.spans import span_rows

    output = Output.of(shown)
    asset = read_asset(folder, labels, model)
    table = out / "table.parquet"
    told = asset.options()
    with writing(str(out)):
        out.mkdir(parents=True, exist_ok=True)
        write_frame(asset.frame, table)
        if asset.faults:
            told["labels"] = str(out / "labels.csv")
            (out / "labels.csv").write_text(span_rows(asset.faults), "utf-8")
    words = [word for name, value in told.items() for word in (f"--{name}", value)]
    command = shlex.join(["vace", "detect", str(table), *words, "--format", "lookout",
                          "--out", str(out / "results")])  # fmt: skip
    rows, sensors = asset.frame.height, asset.frame.width - 1
    output.say(f"{folder}: {rows:,} rows of {sensors} sensors, {len(asset.faults)} labels", "bold")
    output.say(f"go on with:\n  {command}")
    output.json(
        {"rows": rows, "sensors": asset.frame.columns[1:], "labels": len(asset.faults),
         "options": told, "table": str(table), "command": command}
    )  # fmt: skip


import_app.command("lookout")(lookout_command)
