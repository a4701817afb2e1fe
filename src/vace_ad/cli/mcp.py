"""`vace mcp`: a server for assistants."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def mcp_command(
    allow: Annotated[
        list[Path],
        typer.Option(help="A folder whose tables and models may be read; may be repeated."),
    ],
    state: Annotated[
        list[Path] | None,
        typer.Option(help="The state of a `vace watch`, for its alarms; may be repeated."),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Let it write new models to the allowed folders.")
    ] = False,
) -> None:
    """Answer an assistant over the Model Context Protocol, on standard input and output.

    It can detect, explain, describe a model and say what a watch raised last night. It reads in the
    folders of --allow alone, and writes nothing without --write.

    Example: vace mcp --allow data/ --state plant.state
    """
    from vace_ad.assistant import Desk, server

    server(Desk(allow, state or ()), write=write).run("stdio")
