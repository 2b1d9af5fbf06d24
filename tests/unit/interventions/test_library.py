"""`intervene` and the queue as a program uses them: functions and generators, blocking or not."""

from __future__ import annotations

import asyncio
import inspect
import json
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from typer.testing import CliRunner

from interventions import InterventionQueue, InterventionRequest, intervene
from interventions.cli import app
from interventions.entry import Entry
from interventions.home import lock_file, queue_file


def messages(queue: InterventionQueue) -> list[str]:
    return [entry["error_message"] for entry in queue.entries()]


def test_a_function_is_recorded(queue: InterventionQueue) -> None:
    @intervene(phase="p", queue=queue)
    def halve(number: int) -> float:
        """Half of it."""
        return 1 / number

    assert (halve(2), halve.__name__, halve.__doc__) == (0.5, "halve", "Half of it.")
    with pytest.raises(ZeroDivisionError) as caught:
        halve(0)
    assert messages(queue) == ["division by zero"]
    assert caught.value.__notes__ == [f"intervention {queue.entries()[0]['id']}"]


def test_an_async_function_is_recorded(queue: InterventionQueue) -> None:
    @intervene(phase="p", queue=queue)
    async def halve(number: int) -> float:
        await asyncio.sleep(0)
        return 1 / number

    assert inspect.iscoroutinefunction(halve)
    assert asyncio.run(halve(2)) == 0.5
    with pytest.raises(ZeroDivisionError):
        asyncio.run(halve(0))
    assert messages(queue) == ["division by zero"]


def test_a_generator_is_recorded_and_takes_what_is_sent(queue: InterventionQueue) -> None:
    @intervene(phase="p", queue=queue)
    def echo() -> Any:
        heard = []
        while len(heard) < 2:
            try:
                heard.append((yield len(heard)))
            except KeyError:
                heard.append("a key")
        if heard[0] == "fail":
            raise ValueError("while it ran")
        return heard

    running = echo()
    assert (next(running), running.throw(KeyError())) == (0, 1)
    with pytest.raises(StopIteration) as ended:
        running.send("x")
    assert ended.value.value == ["a key", "x"]
    assert messages(queue) == []
    running = echo()
    next(running)
    running.send("fail")
    with pytest.raises(ValueError, match="while it ran"):
        running.send("now")
    echo().close()
    assert messages(queue) == ["while it ran"]


def test_an_async_generator_is_recorded_and_takes_what_is_sent(queue: InterventionQueue) -> None:
    closed = []

    @intervene(phase="p", queue=queue)
    async def echo() -> Any:
        try:
            heard = yield 0
            try:
                heard = yield heard
            except KeyError:
                heard = yield "a key"
            raise ValueError(heard)
        finally:
            closed.append(True)

    async def go() -> None:
        running = echo()
        assert [await running.asend(None), await running.asend(1)] == [0, 1]
        assert await running.athrow(KeyError()) == "a key"
        with pytest.raises(ValueError, match="while it ran"):
            await running.asend("while it ran")
        left = echo()
        await anext(left)
        await left.aclose()

    asyncio.run(go())
    assert messages(queue) == ["while it ran"]
    assert closed == [True, True]


def test_iterating_to_the_end_is_no_failure(queue: InterventionQueue) -> None:
    @intervene(phase="p", queue=queue)
    async def three() -> AsyncIterator[int]:
        for number in range(3):
            yield number

    @intervene(phase="p", queue=queue)
    def two() -> Iterator[int]:
        yield from range(2)

    async def listed() -> list[int]:
        return [number async for number in three()]

    assert (asyncio.run(listed()), list(two()), messages(queue)) == ([0, 1, 2], [0, 1], [])


def test_a_cancelled_task_is_no_failure(queue: InterventionQueue) -> None:
    @intervene(phase="p", queue=queue)
    async def waiting() -> None:
        await asyncio.sleep(60)

    async def go() -> None:
        task = asyncio.create_task(waiting())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(go())
    assert messages(queue) == []


def test_one_decorator_serves_many_calls_at_once(queue: InterventionQueue) -> None:
    @intervene(phase="p", queue=queue)
    async def fail(name: str) -> None:
        await asyncio.sleep(0)
        raise ValueError(name)

    async def go() -> list[Any]:
        return await asyncio.gather(*map(fail, "abc"), return_exceptions=True)

    assert [str(error) for error in asyncio.run(go())] == ["a", "b", "c"]
    assert sorted(messages(queue)) == ["a", "b", "c"]


HOLD = """
    import sys
    from filelock import FileLock
    with FileLock(sys.argv[1]):
        print("held", flush=True)
        sys.stdin.read()
"""


def test_the_event_loop_never_waits_for_the_lock(home: Path, make) -> None:
    queue = InterventionQueue(home, lock_timeout_s=10)
    queue.put(make())
    words = [sys.executable, "-c", textwrap.dedent(HOLD), str(lock_file(home))]

    async def beat() -> None:
        """The lock is let go only by a loop that runs while they wait for it."""
        for _ in range(20):
            await asyncio.sleep(0.01)
        assert holder.stdin is not None
        holder.stdin.close()

    async def fail() -> None:
        async with intervene(phase="p", session_id="with", queue=queue):
            raise ValueError("in a block")

    @intervene(phase="p", session_id="decorated", queue=queue)
    async def decorated() -> None:
        raise ValueError("in a function")

    async def go() -> list[Any]:
        put = queue.aput(make(error_message="put"))
        return await asyncio.gather(put, fail(), decorated(), beat(), return_exceptions=True)

    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        admission, *errors, beaten = asyncio.run(go())
    assert beaten is None
    assert admission
    assert [str(error) for error in errors] == ["in a block", "in a function"]
    assert sorted(messages(queue)[1:]) == ["in a block", "in a function", "put"]


def test_a_plain_put_waits_for_the_lock(home: Path, make) -> None:
    """What `aput` is for."""
    queue = InterventionQueue(home, lock_timeout_s=10)
    queue.put(make())
    released = threading.Event()

    def hold() -> None:
        with FileLock(lock_file(home)):
            held.set()
            released.wait()

    held = threading.Event()
    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    before = time.monotonic()
    threading.Timer(0.3, released.set).start()
    assert queue.put(make())
    assert time.monotonic() - before > 0.2
    holder.join()


def test_without_a_failure_nothing_heavy_is_loaded(home: Path) -> None:
    code = """
        import sys
        from interventions import intervene
        with intervene(phase="p", session_id="s", home=sys.argv[1]):
            pass
        print([name for name in ("pydantic", "asyncio", "hashlib", "tomllib", "dataclasses",
                                 "interventions.queue") if name in sys.modules])
    """
    words = [sys.executable, "-c", textwrap.dedent(code), str(home)]
    answer = subprocess.run(words, capture_output=True, text=True, check=True)
    assert answer.stdout == "[]\n"
    assert list(home.glob("*")) == []


ODD: list[dict[str, Any]] = [
    {"session_id": 42},
    {"severity": "urgent"},
    {"type": "surprise"},
    {"turn_id": 10**5000},
    {"turn_id": "seven"},
    {"context": ["a", "list"]},
    {"tool": object()},
    {"request_id": 5, "error_category": object()},
]


@pytest.mark.parametrize("given", ODD, ids=lambda given: next(iter(given)))
def test_a_bad_argument_in_an_except_is_recorded_with_what_was_wrong(
    queue: InterventionQueue, given: dict[str, Any]
) -> None:
    error = KeyError("the caller's own")
    with pytest.raises(KeyError) as caught, intervene(phase="planner", **given, queue=queue):
        raise error
    assert caught.value is error
    (entry,) = queue.entries()
    assert set(entry["context"]["refused"]) == set(given)
    assert (entry["phase"], entry["error_type"]) == ("planner", "KeyError")
    assert "in test_a_bad_argument" in (entry["traceback"] or "")
    if "session_id" in given:
        assert entry["session_id"] == "42"
    if "severity" in given:
        assert entry["severity"] == "high"
        assert "'critical', 'high' or 'medium'" in entry["context"]["refused"]["severity"]
    if "context" in given:
        assert entry["context"]["value"] == ["a", "list"]


def test_the_rest_of_the_context_is_kept(queue: InterventionQueue) -> None:
    odd: Any = 42
    with (
        pytest.raises(OSError, match="x"),
        intervene(phase="p", session_id=odd, context={"url": "u"}, queue=queue),
    ):
        raise OSError("x")
    assert queue.entries()[0]["context"]["url"] == "u"


def test_the_schema_describes_the_file(queue: InterventionQueue, home: Path, make) -> None:
    """Every key is there, also in what was put with the fewest fields, merged or closed."""
    from jsonschema import Draft202012Validator

    result = CliRunner().invoke(app, ["schema"])
    validator = Draft202012Validator(json.loads(result.stdout))
    Draft202012Validator.check_schema(validator.schema)
    for number in range(12):
        queue.put(make(session_id="one", error_message="abcdefghijkl"[number], context={"a": 1}))
    name = queue.entries()[0]["id"]
    queue.resolve(name, "done")
    queue.snooze(queue.entries()[1]["id"], until_n_more=3)
    document = json.loads(queue_file(home).read_text())
    validator.validate(document)
    assert all(set(entry) >= set(Entry.__annotations__) for entry in document["interventions"])
    shown = json.loads(CliRunner().invoke(app, ["--home", str(home), "list", "--json"]).stdout)
    for entry in shown["interventions"]:
        assert set(Entry.__annotations__) <= set(entry)
    document["interventions"][0]["turn_id"] = "seven"
    assert not validator.is_valid(document)


def test_an_older_file_is_read_with_every_key(queue: InterventionQueue, home: Path) -> None:
    path = queue_file(home)
    path.parent.mkdir(parents=True)
    least = {"id": "int_1_aaaaaa", "created_at": "2026-01-01T00:00:00Z"}
    path.write_text(json.dumps({"interventions": [least]}))
    (entry,) = queue.entries()
    assert set(entry) == set(Entry.__annotations__)
    assert {entry[name] for name in ("owner", "tool", "retry_of")} == {None}  # type: ignore[literal-required]


def test_a_request_has_the_fields_of_an_entry() -> None:
    assert set(InterventionRequest.model_fields) == set(Entry.__annotations__) - {"superseded"}


@dataclass(frozen=True)
class FrozenError(Exception):
    code: int


class ForwardingError(Exception):
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"nothing to forward {name} to")


@pytest.mark.parametrize("kind", [FrozenError, ForwardingError])
def test_an_error_that_takes_no_note_goes_on(
    queue: InterventionQueue, kind: type[Exception]
) -> None:
    error = kind(3)
    with pytest.raises(type(error)) as caught, intervene(phase="p", queue=queue):
        raise error
    assert caught.value is error
    assert "test_an_error_that_takes_no_note" in (queue.entries()[0]["traceback"] or "")


def test_a_loop_that_has_no_threads_any_more_loses_no_failure(queue: InterventionQueue) -> None:
    async def fail() -> None:
        await asyncio.get_running_loop().shutdown_default_executor()
        async with intervene(phase="p", queue=queue):
            raise KeyError("own")

    with pytest.raises(KeyError, match="own"):
        asyncio.run(fail())
    assert messages(queue) == ["'own'"]
