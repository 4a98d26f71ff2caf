#!/usr/bin/env python3
"""Writes the files of events in this folder, as programs write them: python3 make_events.py, where torch, tensorboard and
tensorboardX are installed (pip install torch tensorboard tensorboardX). file_watch_test.cc reads them.

torch.tfevents   by torch.utils.tensorboard: a scalar in the old form, others in the new one, and what is no scalar
x.tfevents       by tensorboardX: the same tag, with nan and inf among its values
"""
import pathlib
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def write(name, make):
    with tempfile.TemporaryDirectory() as folder:
        writer = make(folder)
        for step in (1, 2, 3):
            writer.add_scalar("train/loss", 1.0 / step, step)
        if name == "torch":
            writer.add_scalar("val/loss", 0.5, 1)
            writer.add_scalar("val/loss", 0.25, 2, new_style=True)
            writer.add_scalar("val/loss", 0.125, 3, new_style=True, double_precision=True)
            writer.add_text("val/loss", "is no scalar", 4)
        else:
            for step, value in ((1, 0.75), (2, float("nan")), (3, float("inf"))):
                writer.add_scalar("val/loss", value, step)
        writer.close()
        written, = pathlib.Path(folder).glob("*tfevents*")
        (HERE / f"{name}.tfevents").write_bytes(written.read_bytes())


if __name__ == "__main__":
    import tensorboardX
    import torch.utils.tensorboard

    write("torch", torch.utils.tensorboard.SummaryWriter)
    write("x", tensorboardX.SummaryWriter)
