"""How long something took."""

from time import perf_counter


def elapsed_ms(started: float) -> float:
    """Milliseconds since `started`, a reading of `perf_counter`, to the microsecond."""
    return round((perf_counter() - started) * 1e6) / 1000
