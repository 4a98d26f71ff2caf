"""Test programs on the device, each within its own time. See plan.py."""
import os
import pathlib
import re
import shutil

from step_tools import Skipped, binary, google_test, on_its_own, output_of, step


@step("works", 40)
def device_test():
    return google_test("test_trial_runner", "--gtest_filter=AssignedDevice*:EndIfSlotIsAtFault*:MisplacedModel*:"
                                            "GradientKernelFor*:AllocatedBytes*:StepTimer*:DeviceStepTimes*",
                       on_host=("AssignedDevice", "EndIfSlotIsAtFault", "MisplacedModel", "GradientKernelFor", "StepTimer",
                                "DeviceStepTimes"))


@step("works", 60)
def gradient_buckets():
    return google_test("test_trial_runner", "--gtest_filter=*GradientBuckets*:*GradientNorms*:*BucketOperations*:NormKernels*",
                       on_host=("GradientBuckets", "NormKernels"))


@step("works", 30)
def optimizer_steps():
    return google_test("test_trial_runner", "--gtest_filter=*FusedOptimizerTest*:*TrainedModel*:HostCopies*-*DeathTest*")


@step("works", 30)
def state_transfer():
    return google_test("test_trial_runner", "--gtest_filter=WarmUp*:*EachOptimizer*:StateTransfer*:BrokenTransfer*")


@step("works", 30)
def checkpoint():
    return google_test("test_trial_runner", "--gtest_filter=Checkpoint.*:*EachCheckpointedOptimizer*")


@step("groups", 40)
def collectives():
    return google_test("test_collectives_contract", on_host=("CudaLibrary",))


@step("holds", 60)
def precision():
    """fp16 and bf16 beside float, and a step whose loss is no number, alone and in a group."""
    return google_test("test_elastic_training", "--gtest_filter=*Precision*:*Skipping*", replicas=True)


@step("groups", 100)
def compute_sanitizer():
    """The gradient buckets' tests under the toolkit's checker of memory, where the machine has it."""
    at = shutil.which("compute-sanitizer", path=f"{os.environ['PATH']}:/usr/local/cuda/bin")
    if at is None:
        raise Skipped("the machine has no compute-sanitizer")
    out = output_of([at, "--error-exitcode", "9", binary("test_trial_runner"), "--gtest_filter=*GradientBucketsTest*"],
                    env=on_its_own(PYTORCH_NO_CUDA_MEMORY_CACHING="1"))
    passed = re.search(r"\[\s+PASSED\s+\] (\d+) test", out)
    if not passed or int(passed[1]) == 0:
        raise AssertionError(f"{pathlib.Path(at).name} ran no test")
    return {"passed": int(passed[1])}


@step("holds", 260)
def soak():
    return google_test("test_elastic_soak", replicas=True)
