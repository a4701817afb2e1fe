"""The command `vace`: its subcommands, each a file beside this one."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import vace_ad
from vace_ad.cli.demo import demo_command
from vace_ad.cli.detect import detect_command
from vace_ad.cli.evaluate import evaluate_command
from vace_ad.cli.feedback import feedback_command, update_command
from vace_ad.cli.importing import import_app
from vace_ad.cli.mcp import mcp_command
from vace_ad.cli.model import fit_command, inspect_command, score_command
from vace_ad.cli.versions import models_command, retrain_command
from vace_ad.cli.watch import watch_command
from vace_ad.errors import MissingExtraError, VaceError
from vace_ad.wording import plain_text

UNFORESEEN = 70  # exit status where the fault is ours, as sysexits.h has it
GROUP = "vace_ad.commands"  # entry points of other packages, each a typer.Typer


class Commands(TyperGroup):
    """The commands of this package, and those that installed packages add by an entry point.

    Entry points are looked up only for a name that is not ours, and for the list in the help.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """Ours first, then the added ones by name."""
        return list(
            dict.fromkeys([*super().list_commands(ctx), *sorted(entry_points(group=GROUP).names)])
        )

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Ours, or the added one; its package is imported now."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        for point in entry_points(group=GROUP, name=cmd_name):
            added = typer.main.get_command(point.load())
            added.name = cmd_name
            return added
        if cmd_name == "bench":
            raise MissingExtraError("`vace bench`", "vace_study", "", "vace-ad-study")
        return None


app = typer.Typer(
    cls=Commands,
    help="Find anomalies in multivariate time series.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"vace-ad {vace_ad.__version__}")
        raise typer.Exit


@app.callback()
def _vace(
    context: typer.Context,
    debug: Annotated[bool, typer.Option(help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Find anomalies in multivariate time series.

    Start with `vace demo`, then `vace detect your.csv`.
    """
    context.obj = {"debug": debug}


app.command("demo")(demo_command)
app.command("detect")(detect_command)
app.command("fit")(fit_command)
app.command("score")(score_command)
app.command("inspect")(inspect_command)
app.command("feedback")(feedback_command)
app.command("update")(update_command)
app.command("retrain")(retrain_command)
app.command("models")(models_command)
app.command("evaluate")(evaluate_command)
app.add_typer(import_app, name="import")
app.command("watch")(watch_command)
app.command("mcp")(mcp_command)


def main() -> None:
    """Run the command; an error is one sentence and exit status 2, or 70 where it is our fault."""
    try:
        app()  # exits by itself, also after a wrong option
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:  # a library's panic is no Exception
        if "--debug" in sys.argv:
            raise
        typer.echo(plain_text(f"error: {_sentence(error)}"), err=True)
        sys.exit(2 if isinstance(error, VaceError) else UNFORESEEN)


def _sentence(error: BaseException) -> str:
    if isinstance(error, VaceError):
        return error.told(options=True)
    if isinstance(error, MemoryError):
        return "there is not enough memory for this; give fewer rows or columns"
    first = (str(error).strip().splitlines() or [""])[0]
    return (
        f"something unforeseen went wrong ({type(error).__name__}: {first}); please report it on "
        "the project's repository page, with what the same command prints with --debug"
    )
