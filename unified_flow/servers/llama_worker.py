"""The child process: loads the model, says where it listens, ends when its parent does.

`llama_server.py` runs it as a module. It reads one line of JSON (the order) from standard input and
writes one to standard output: {"url": …} or {"error": …}. It ends when its input does.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends us
    order: dict[str, Any] = json.loads(sys.stdin.readline())
    # Whatever the library prints goes to the log; the answer alone goes to the parent.
    answer = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        server = _serve(order)
        result = {"url": f"{server.listening_address}/v1"}
    except ImportError as exc:
        result = {"error": f"xllamacpp is not installed: {exc}", "missing": "yes"}
    except Exception as exc:  # noqa: BLE001 - whatever it is, the parent is told and decides
        result = {"error": str(exc) or type(exc).__name__}
    print(json.dumps(result), file=answer, flush=True)
    if "url" not in result:
        return  # what the library still has to log it logs as Python ends
    sys.stdin.read()
    # Its threads would finish the current reply, which nobody reads.
    os._exit(0)


def _serve(order: dict[str, Any]) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = order["path"]
    params.model_alias = {order["alias"]}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [order["key"]]
    params.cors_origins = ""  # no page of any site may read an answer
    params.ui = False
    params.endpoint_slots = False
    params.n_ctx = order["context_tokens"]
    params.n_parallel = 1
    params.cpuparams.n_threads = order["threads"]
    params.cpuparams_batch.n_threads = order["threads"]
    params.no_extra_bufts = True  # repacked weights would stand in memory a second time
    params.warmup = False
    if order["embedding"]:
        params.embedding = True
        if not _says_how_it_pools(order["path"]):
            params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
        params.n_ubatch = order["context_tokens"]  # a text must fit one batch
    # Else a small model says the same until its reply is cut. Qwen's 0.5B and 1.5B come with it.
    params.sampling.penalty_repeat = 1.1
    params.verbosity = 1
    return xllamacpp.Server(params)


def _says_how_it_pools(path: str) -> bool:
    """Whether the file of an embedding model says how its states become one vector, which it does
    before the words that it knows. A model that was made to write does not."""
    with Path(path).open("rb") as file:
        return b".pooling_type" in file.read(64 * 1024)


if __name__ == "__main__":
    main()
