"""Optuna's own storage proxy with its defaults: optuna_proxy.py inmemory|sqlite HOST:PORT [FILE]."""
import sys

from optuna.storages import InMemoryStorage, get_storage, run_grpc_proxy_server

kind, address = sys.argv[1:3]
host, port = address.rsplit(":", 1)
storage = InMemoryStorage() if kind == "inmemory" else get_storage(f"sqlite:///{sys.argv[3]}")
run_grpc_proxy_server(storage, host=host, port=int(port))
