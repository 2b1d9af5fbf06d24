"""The one place where the commands catch; the codes are those of `interventions`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from interventions.cli.terminal import Code, code_of, note
from interventions.cli.terminal import exits as queue_exits
from interventions.errors import QueueError
from unified_flow.errors import (
    ConfigError,
    InputError,
    QueueFullError,
    RetrievalError,
    ToolArgumentError,
    UnifiedFlowError,
)

CODES: tuple[tuple[type[UnifiedFlowError], Code], ...] = (
    (InputError, Code.USAGE),
    (ConfigError, Code.USAGE),
    (ToolArgumentError, Code.USAGE),
    (QueueFullError, Code.QUEUE),
    (RetrievalError, Code.FAILED),
)


@contextmanager
def refused_as_json(wanted: bool, session: str | None = None) -> Iterator[None]:
    """A script that reads an object gets one, also where no turn has begun or gone on."""
    try:
        yield
    except (UnifiedFlowError, QueueError) as exc:
        if wanted:
            from unified_flow.cli.outcome import of_refusal
            from unified_flow.cli.terminal import say_object

            say_object(of_refusal(exc, session or ""))
        raise


@contextmanager
def exits() -> Iterator[None]:
    """Mistakes that a person can mend end in one line, a hint and a code, without a traceback."""
    with queue_exits():
        try:
            yield
        except BrokenPipeError:
            raise
        except (UnifiedFlowError, OSError) as exc:
            raise typer.Exit(report(exc)) from exc


def report(error: UnifiedFlowError | QueueError | OSError) -> Code:
    """Say what went wrong and what to do about it; the code with which a command ends."""
    from interventions.secrets.redaction import redact_text  # 8 ms, for which --help need not wait

    message, hint = str(error), getattr(error, "hint", None)
    if isinstance(error, UnifiedFlowError):  # some are an OSError as well
        message = redact_text(message)
        code = next((code for kind, code in CODES if isinstance(error, kind)), Code.FAILED)
    elif isinstance(error, QueueError):
        code = code_of(error)
    else:
        from interventions.storage.disk import remedy

        where = f"{error.filename}: " if error.filename else ""
        message, hint, code = f"{where}{error.strerror or error}", remedy(error), Code.USAGE
    note(f"error: {message}")
    if hint:
        note(f"  hint: {hint}")
    return code
