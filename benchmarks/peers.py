"""What eight no-op steps, each durable, cost elsewhere: run by `journal.py --peers PYTHON`.

    PYTHON benchmarks/peers.py NAME --folder DIR [--turns N]

PYTHON is an interpreter of an environment of their own in which the peers are installed
(langgraph langgraph-checkpoint-sqlite burr dbos). Prints {"ms", "floor_ms"}.
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path

from floor import measure

PHASES = 8


def langgraph(folder: Path, turns: int) -> dict[str, float]:
    import sqlite3
    from typing import Any, TypedDict

    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import END, START, StateGraph

    class State(TypedDict):
        done: int

    graph: Any = StateGraph(State)
    names = [f"phase{number}" for number in range(PHASES)]
    for name in names:
        graph.add_node(name, lambda state: {"done": state["done"] + 1})
    for before, after in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(before, after)
    connection = sqlite3.connect(folder / "langgraph.sqlite3", check_same_thread=False)
    app = graph.compile(checkpointer=SqliteSaver(connection))

    def turn(number: int) -> None:
        config = {"configurable": {"thread_id": str(number)}}
        assert app.invoke({"done": 0}, config, durability="sync")["done"] == PHASES

    return measure(turn, folder, turns, PHASES)


def burr(folder: Path, turns: int) -> dict[str, float]:
    from burr.core import ApplicationBuilder, State, action
    from burr.core.persistence import SQLLitePersister

    @action(reads=["done"], writes=["done"])
    def step(state: State) -> State:
        return state.update(done=state["done"] + 1)

    persister = SQLLitePersister(db_path=str(folder / "burr.sqlite3"), table_name="turns")
    persister.initialize()
    names = [f"phase{number}" for number in range(PHASES)]

    def turn(number: int) -> None:
        application = (
            ApplicationBuilder()
            .with_actions(**{name: step for name in names})
            .with_transitions(*itertools.pairwise(names))
            .with_state(done=0)
            .with_entrypoint(names[0])
            .with_identifiers(app_id=str(number))
            .with_state_persister(persister)
            .build()
        )
        _, _, state = application.run(halt_after=[names[-1]])
        assert state["done"] == PHASES

    return measure(turn, folder, turns, PHASES)


def dbos(folder: Path, turns: int) -> dict[str, float]:
    from dbos import DBOS

    DBOS(
        config={
            "name": "bench",
            "system_database_url": f"sqlite:///{folder / 'dbos.sqlite3'}",
            "log_level": "ERROR",
        }
    )

    @DBOS.step()
    def step(done: int) -> int:
        return done + 1

    @DBOS.workflow()
    def run() -> int:
        done = 0
        for _ in range(PHASES):
            done = step(done)
        return done

    DBOS.launch()

    def turn(number: int) -> None:
        assert run() == PHASES

    try:
        return measure(turn, folder, turns, PHASES)
    finally:
        DBOS.destroy()


CONTESTANTS = {"langgraph": langgraph, "burr": burr, "dbos": dbos}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=CONTESTANTS)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--turns", type=int, default=200)
    options = parser.parse_args()
    print(json.dumps(CONTESTANTS[options.name](options.folder, options.turns)))


if __name__ == "__main__":
    main()
