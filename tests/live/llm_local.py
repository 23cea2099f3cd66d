"""Serves one GGUF model over an OpenAI-compatible endpoint on loopback; runs in its own environment.

The key comes from the environment variable LOCAL_LLM_KEY and is only compared, never printed.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--ctx", type=int, default=8_192)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    xllamacpp = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = options.model
    params.model_alias = {"local"}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = options.ctx
    params.n_parallel = 1
    params.cpuparams.n_threads = options.threads
    params.cpuparams_batch.n_threads = options.threads
    params.api_keys = [os.environ["LOCAL_LLM_KEY"]]
    params.ui = False
    params.endpoint_slots = False
    params.endpoint_props = False
    params.offline = True
    server = xllamacpp.Server(params)
    print("READY", server.listening_address, flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
