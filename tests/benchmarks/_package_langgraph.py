"""The same steps and payload through LangGraph's SqliteSaver; run inside a throw-away environment.

    python _package_langgraph.py DATABASE STEPS.json

The state's artifacts are one ordinary channel that every step rewrites with its six artifacts, as the
library does by default; the inputs stay outside the state. Prints CPU seconds of the steps.
"""

from __future__ import annotations

import importlib
import json
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any, TypedDict


class State(TypedDict, total=False):
    """The graph's state."""

    artifacts: dict[str, str]
    events: list[str]
    number: int


def run(database: str, steps: list[dict[str, Any]]) -> dict[str, float]:
    """Run one graph step per generation and return figures."""
    graphs = importlib.import_module("langgraph.graph")
    savers = importlib.import_module("langgraph.checkpoint.sqlite")

    def work(state: State) -> State:
        step = steps[state.get("number", 0)]
        artifacts = {**state.get("artifacts", {}), **step["put"]}
        return {
            "artifacts": artifacts,
            "events": [*state.get("events", []), *step["events"]],
            "number": state.get("number", 0) + 1,
        }

    def onward(state: State) -> str:
        return "work" if state["number"] < len(steps) else graphs.END

    builder = graphs.StateGraph(State)
    builder.add_node("work", work)
    builder.add_edge(graphs.START, "work")
    builder.add_conditional_edges("work", onward)
    connection = sqlite3.connect(database, check_same_thread=False)
    graph = builder.compile(checkpointer=savers.SqliteSaver(connection))
    config = {"configurable": {"thread_id": "bench"}, "recursion_limit": len(steps) + 10}
    start = time.process_time()
    graph.invoke({"number": 0}, config, durability="sync")
    cpu = time.process_time() - start
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return {"cpu_seconds": cpu, "steps": float(len(steps))}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(sys.argv[1], json.loads(Path(sys.argv[2]).read_text("utf-8")))) + "\n")
