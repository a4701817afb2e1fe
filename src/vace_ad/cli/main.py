"""The command `vace`: its subcommands, each a file beside this one."""

from __future__ import annotations

import typer

app = typer.Typer(
    help="Find anomalies in multivariate time series.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def _vace() -> None:
    """Find anomalies in multivariate time series."""


def main() -> None:
    """Run the command."""
    app()
