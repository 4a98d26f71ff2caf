"""A pytest plugin: the storage of Optuna's tests is a server that is already running.

EXTERNAL_STORAGE=HOST:PORT,HOST:PORT names two: tests that copy a study open two storages at once. Each test gets an empty
server: all studies are deleted before it."""
import os

import optuna.testing.storages as storages
from optuna.storages import GrpcStorageProxy

MODE = "grpc_external"
ADDRESSES = os.environ["EXTERNAL_STORAGE"].split(",")
storages.STORAGE_MODES[:] = [MODE]  # the list object that the tests have imported
Original = storages.StorageSupplier
taken = []


class ExternalStorage(Original):
    def __enter__(self):
        if self.storage_specifier != MODE:
            return super().__enter__()
        self.address = next(a for a in ADDRESSES if a not in taken)
        taken.append(self.address)
        host, port = self.address.rsplit(":", 1)
        self.proxy = self.storage = GrpcStorageProxy(host=host, port=int(port))
        self.proxy.wait_server_ready(timeout=60)
        for study in self.proxy.get_all_studies():
            self.proxy.delete_study(study._study_id)
        return self.proxy

    def __exit__(self, *arguments):
        if self.storage_specifier == MODE:
            taken.remove(self.address)
        return super().__exit__(*arguments)


storages.StorageSupplier = ExternalStorage
