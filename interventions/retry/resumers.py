"""What can continue a turn, found through the entry point group `interventions.resumers`.

It is a Resumer (contract.py), or an object with a plain `resume` (plain.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from interventions.errors import ConflictError, NoResumerError, QueueError
from interventions.retry.contract import Resumer, RetryFailedError, RetryRequest, RetryResult
from interventions.retry.plain import PlainResumer

GROUP = "interventions.resumers"


def has_resumer() -> bool:
    """Whether one is registered; it is not loaded, which may take long."""
    from importlib.metadata import entry_points  # late: it costs as much as the whole of --help

    return bool(entry_points(group=GROUP))


def find_resumer() -> Resumer:
    """Raises NoResumerError when none is installed, or it cannot be loaded or is none."""
    found = registered(GROUP, "the resumer")
    if callable(getattr(found, "retry", None)):
        resumer: Resumer = found
        return resumer
    if callable(getattr(found, "resume", None)):
        return PlainResumer(found.resume)
    if found is not None:
        raise NoResumerError(
            f"the resumer {found!r} has neither retry(home, request) nor resume(turn_id, home)",
            hint="mend or uninstall the package that registers it",
        )
    raise NoResumerError(
        "nothing that is installed can continue a turn",
        hint=f"a program registers what can under the entry point group {GROUP!r}; "
        "until then mend the cause, ask again, and resolve with a note",
    )


def registered(group: str, what: str) -> Any:
    """The object of an entry point group, None without one. Raises NoResumerError."""
    from importlib.metadata import entry_points

    for point in entry_points(group=group):
        try:
            found = point.load()
            return found() if isinstance(found, type) else found
        except Exception as error:  # a foreign module may raise anything
            raise NoResumerError(
                f"{what} {point.name!r} ({point.value}) cannot be loaded: {error}",
                hint="mend or uninstall the package that registers it",
            ) from error
    return None


def retry(home: Path, request: RetryRequest) -> RetryResult:
    """Resume the turn. Raises RetryFailedError, NoResumerError or another QueueError."""
    if not request.turn_id:
        raise ConflictError(
            f"{request.intervention_id} belongs to no turn, so there is nothing to retry",
            hint="mend the cause and resolve it with a note",
        )
    resumer = find_resumer()
    try:
        result = resumer.retry(home, request)
    except QueueError:
        raise
    except Exception as error:  # whatever the resumed turn raises is a retry that failed
        raise RetryFailedError(f"{type(error).__name__}: {error}") from error
    if result.failed_again:
        raise RetryFailedError(result.message or "it failed again", result.difference)
    return result
