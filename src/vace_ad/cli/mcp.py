"""`vace mcp`: a server for assistants."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def mcp_command(
    allow: Annotated[
        list[Path],
        typer.Option(
            help="Folder whose tables and models may be read; may be given several times."
        ),
    ],
    state: Annotated[
        list[Path] | None,
        typer.Option(
            help="State file of `vace watch`, for its alarms; may be given several times."
        ),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Allow new models to be written to these folders.")
    ] = False,
) -> None:
    """Serve an assistant over the Model Context Protocol, on standard input and output.

    The assistant can detect and explain events, describe a model and list the alarms of a watch.
    Only the folders of --allow are read, and nothing is written without --write.

    Example: vace mcp --allow data/ --state plant.state
    """
    from vace_ad.assistant import AssistantTools, server

    server(AssistantTools(allow, state or ()), write=write).run("stdio")
