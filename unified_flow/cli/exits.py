"""The one place where the commands catch; the codes are those of `interventions`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from interventions.cli.terminal import Code, note
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
        except UnifiedFlowError as exc:
            from interventions.secrets.redaction import (
                redact_text,  # 8 ms, which --help need not wait for
            )

            code = next((code for kind, code in CODES if isinstance(exc, kind)), Code.FAILED)
            note(f"error: {redact_text(str(exc))}")
            if exc.hint:
                note(f"  hint: {exc.hint}")
            raise typer.Exit(code) from exc
        except BrokenPipeError:
            raise
        except OSError as exc:
            # Whatever folder or stream it is that cannot be used: a line, not a traceback.
            from interventions.storage.disk import remedy

            where = f"{exc.filename}: " if exc.filename else ""
            note(f"error: {where}{exc.strerror or exc}")
            if hint := remedy(exc):
                note(f"  hint: {hint}")
            raise typer.Exit(Code.USAGE) from exc
