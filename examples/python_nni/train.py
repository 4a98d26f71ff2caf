"""Fashion-MNIST as a trial of NNI: NNI's calls, and a loop that Espalier resizes.

Each replica runs all of it and makes NNI's calls. Their reports go by the trial, which sends each once.
"""
import argparse
import pathlib
import sys

import nni
import torch
import torch.nn.functional as F
from torch.utils.data import TensorDataset

import espalier
import espalier.torch as adl

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python_fashion_mnist"))
from fashion_mnist import DATA, VALIDATION_IMAGES, make_net, read_images  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--samples", type=int, default=55000, help="of the training images")
    parser.add_argument("--data", default=DATA)
    arguments = parser.parse_args()

    parameters = nni.get_next_parameter()
    pixels, labels = read_images(arguments.data, "train")
    training = TensorDataset(pixels[:arguments.samples], labels[:arguments.samples])
    validation = TensorDataset(pixels[-VALIDATION_IMAGES:], labels[-VALIDATION_IMAGES:])

    device = espalier.trial().device
    net = make_net(parameters["width"], parameters["dropout"]).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=parameters["lr"], momentum=0.9)
    model = adl.AdaptiveDataParallel(net, optimizer)
    loader = adl.AdaptiveDataLoader(training, batch_size=parameters["batch_size"], shuffle=True)
    held_out = adl.AdaptiveDataLoader(validation, batch_size=500)
    seen = adl.Accumulator()

    for epoch in adl.epochs(arguments.epochs):
        model.train()
        for images, classes in loader:                      # replicas come and go here
            F.cross_entropy(model(images.to(device)), classes.to(device)).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for images, classes in held_out:                # cut over the replicas
                outputs = model(images.to(device)).cpu()
                seen["loss"] += F.cross_entropy(outputs, classes, reduction="sum").item()
                seen["correct"] += (outputs.argmax(1) == classes).sum().item()
        with seen.synchronized():
            accuracy, loss = seen["correct"] / len(validation), seen["loss"] / len(validation)
            seen.clear()
        nni.report_intermediate_result({"default": accuracy, "loss": loss})
        if epoch == arguments.epochs:
            nni.report_final_result(accuracy)


if __name__ == "__main__":
    main()
