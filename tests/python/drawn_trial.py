"""Trains a drawn program as a trial. Before each batch, and at an epoch's end, a replica says where it is, and is told what to do.

usage: drawn_trial.py PROGRAM SOCKET"""
import os
import pickle
import signal
import sys
from multiprocessing.connection import Client

import torch
from torch.utils.data import TensorDataset

import espalier
import espalier.torch as adl
from drawn_job import HELD_OUT, Job
from drawn_programs import from_json
from espalier._runtime import runtime


class Replica:
    def __init__(self, program, socket):
        self.job = Job(program)
        self.program = program
        self._dies = ""  # before what of a batch to come
        self._left_out = False  # the last batch, maybe after backward
        self._test = Client(socket, "AF_UNIX")
        job = self.job
        options = {"max_gradient_norm": 0.5} if program.has("clips:option") else {}
        job.model = adl.AdaptiveDataParallel(job.net, job.optimizer, job.schedule, job.scaler, **options)
        numbers = torch.arange(program.samples)
        self.loader = adl.AdaptiveDataLoader(TensorDataset(job.x, job.y, numbers), batch_size=program.batch,
                                             local_bsz_bounds=(None, program.most) if program.most else None)
        job.begin_training()
        if program.by_shares:
            job.before_pass = lambda number: self.say("draws", draws=torch.get_rng_state())

    def say(self, what, **more):
        position = runtime().position
        self._test.send_bytes(pickle.dumps({"what": what, "rank": position.rank, "replicas": position.replicas,
                                            "generation": position.generation, "pid": os.getpid(), **more}))
        return pickle.loads(self._test.recv_bytes())

    def batch(self, epoch, x, y, numbers):
        number = int(numbers[0]) // self.program.batch
        state = {"buffers": self.job.buffers()} if self.program.by_shares else {}
        dies = self.say("batch", epoch=epoch, number=number, samples=numbers.tolist(), **state) or self._dies
        if self._left_out:  # others are still to hear of it
            self._dies, dies = dies, ""
        if dies == "forward":
            os.kill(os.getpid(), signal.SIGKILL)
        takes = self.job.backward(x, y, number)
        self._left_out = not takes
        if not takes:
            self._dies = dies or self._dies
            return
        if dies == "backward":
            os.kill(os.getpid(), signal.SIGKILL)
        self.job.step(self.loader.accumulating)
        if dies == "stepped":
            os.kill(os.getpid(), signal.SIGKILL)

    def train(self):
        trial = espalier.trial()
        for epoch in adl.remaining_epochs_until(1000):
            self.job.begin_epoch(epoch)
            for x, y, numbers in self.loader:
                self.batch(epoch, x, y, numbers)
            self.job.end_epoch()
            stops = self.say("ends", epoch=epoch)
            sums = adl.evaluate(lambda indices: {"loss": self.job.evaluate(indices), "stops": int(stops)}, HELD_OUT, 5)
            self.say("evaluated", epoch=epoch, loss=sums["loss"])
            trial.report(epoch + 1, sums["loss"])
            if sums["stops"]:
                break
        self.say("result", result=self.job.result())


def main():
    torch.set_num_threads(1)
    with open(sys.argv[1], encoding="utf-8") as file:
        program = from_json(file.read())
    Replica(program, sys.argv[2]).train()


if __name__ == "__main__":
    main()
