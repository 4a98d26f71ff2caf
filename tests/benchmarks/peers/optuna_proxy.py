"""Optuna's own storage proxy: optuna_proxy.py inmemory|sqlite [FILE]. It is made as run_grpc_proxy_server makes it,
which would not say what port the kernel gave: "gRPC HOST:PORT" is printed once it listens."""
from concurrent.futures import ThreadPoolExecutor
import sys

import grpc
from optuna.storages import InMemoryStorage, get_storage
from optuna.storages._grpc import servicer
from optuna.storages._grpc.auto_generated import api_pb2_grpc

THREADS = 10  # Optuna's default

storage = InMemoryStorage() if sys.argv[1] == "inmemory" else get_storage(f"sqlite:///{sys.argv[2]}")
server = grpc.server(ThreadPoolExecutor(max_workers=THREADS))
api_pb2_grpc.add_StorageServiceServicer_to_server(servicer.OptunaStorageProxyService(storage), server)
port = server.add_insecure_port("127.0.0.1:0")
server.start()
print(f"gRPC 127.0.0.1:{port}", flush=True)
server.wait_for_termination()
