"""AdaptDL's experiments of NNI 2.x (`trainingServicePlatform: adl`) in the form of NNI 3.0, which cannot read them."""
import pathlib

try:
    import yaml
except ModuleNotFoundError:  # the wheel espalier-tuner has this package also where NNI is not wanted
    yaml = None

# Fields of version 1 that NNI 3.0 has under the same or another name.
_EXPERIMENT = {
    "experimentName": "experimentName", "searchSpacePath": "searchSpaceFile", "trialConcurrency": "trialConcurrency",
    "maxExecDuration": "maxExperimentDuration", "maxTrialNum": "maxTrialNumber", "maxTrialDuration": "maxTrialDuration",
    "debug": "debug", "logLevel": "logLevel", "logDir": "experimentWorkingDirectory"}
_TRIAL = {"command": "trialCommand", "codeDir": "trialCodeDirectory", "gpuNum": "trialGpuNumber"}
_PATHS = ("searchSpaceFile", "trialCodeDirectory", "experimentWorkingDirectory")

# Fields that mean nothing here, with what is instead; "" where nothing is lost.
_DROPPED = {
    "authorName": "", "description": "", "versionCheck": "", "logCollection": "", "multiThread": "", "nniManagerIp": "",
    "trial.image": "trials run on the agents' machines, not in a container of this image: install there what it holds, or "
                   "start the agents inside it",
    "trial.imagePullSecrets": "agents pull no images",
    "trial.namespace": "the pool is not a part of a cluster",
    "trial.nfs": "mount it on all agents at the same path",
    "trial.cpuNum": "a slot is what an agent makes of its machine: tuner agent --slots",
    "trial.memorySize": "memory is not divided among trials",
    "trial.checkpoint": "each trial has a folder for its checkpoints, which follows it from machine to machine; the volume's "
                        "class and size have no counterpart"}
_ALGORITHM_DROPPED = {"includeIntermediateResults": "", "checkpointDir": ""}


class ConversionError(Exception):
    """What keeps a file from being converted."""


def convert(path, base, platform, service):
    """The new YAML, with relative paths as seen from the folder `base`, and what the user should know of it."""
    old = _load(path)
    notes = []
    new = {}
    trial = old.pop("trial")
    _move(old, new, _EXPERIMENT)
    _move(trial, new, _TRIAL)
    for kind in ("tuner", "assessor", "advisor"):
        if old.get(kind) is not None:
            new["tuner" if kind == "advisor" else kind] = _algorithm(kind, old[kind], new, notes)
        old.pop(kind, None)
    target = {"platform": platform}
    if service is not None:
        target["serviceAddress"] = service
    target.update(_elasticity(bool(trial.pop("adaptive", False)), new.get("trialGpuNumber")))
    new["trainingService"] = target
    if new.get("trialGpuNumber") == 0:
        del new["trialGpuNumber"]
    _drop({**old, **{f"trial.{name}": value for name, value in trial.items()}}, notes)
    _rebase(new, pathlib.Path(path).parent, base)
    _check_code_directory(new, base, notes)
    return yaml.safe_dump(new, sort_keys=False), notes


def _load(path):
    if yaml is None:
        raise ConversionError("needs PyYAML, which comes with NNI: pip install nni==3.0 'setuptools<81'")
    try:
        old = yaml.safe_load(pathlib.Path(path).read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConversionError(f'"{path}" is not YAML: {error}') from None
    if not isinstance(old, dict):
        raise ConversionError(f'"{path}" is not an experiment: it holds no fields')
    platform = old.pop("trainingServicePlatform", None)
    if platform is None and "trainingService" in old:
        raise ConversionError(f'"{path}" is of NNI\'s version 2 already: give it the platform espalier_nni in trainingService')
    if platform != "adl":
        raise ConversionError(f'"{path}": trainingServicePlatform is {platform!r}, must be "adl"')
    if not isinstance(old.get("trial"), dict):
        raise ConversionError(f'"{path}" has no section "trial"')
    for field, what in (("multiPhase", "trials of several parameters"), ("useAnnotation", "annotations in trial code")):
        if old.pop(field, False):
            raise ConversionError(f'"{path}": {field} is true, but NNI 3.0 has no {what} any more')
    return old


def _move(old, new, names):
    for name, renamed in names.items():
        if name in old:
            new[renamed] = old.pop(name)


def _elasticity(adaptive, gpus):
    """With AdaptDL `adaptive` stood for both: a trial whose replicas come and go, and whose batch size follows them."""
    return {"adaptive": True} if adaptive else {"adaptive": False, "maxSlots": max(1, gpus or 1)}


def _algorithm(kind, old, experiment, notes):
    old = dict(old)
    new = {}
    name = old.pop(f"builtin{kind.title()}Name", None)
    if name is not None:
        new["name"] = name
    elif "classFileName" in old:
        new["className"] = old.pop("classFileName").removesuffix(".py") + "." + old.pop("className")
        new["codeDirectory"] = old.pop("codeDir")
    else:
        raise ConversionError(f"{kind}: neither builtin{kind.title()}Name nor classFileName is given")
    if "classArgs" in old:
        new["classArgs"] = old.pop("classArgs")
    if "gpuIndices" in old:
        experiment["tunerGpuIndices"] = old.pop("gpuIndices")
    for field in old:
        why = _ALGORITHM_DROPPED.get(field)
        notes.append(f"{kind}.{field} is left out: " + ("NNI 3.0 has no such field" if why is not None else "it is unknown"))
    return new


def _drop(left, notes):
    for field in left:
        why = _DROPPED.get(field)
        if why is None:
            notes.append(f"{field} is left out: it is no field of AdaptDL's experiments")
        elif why:
            notes.append(f"{field} is left out: {why}")


def _rebase(new, old_base, base):
    """Relative paths are taken from their file's folder, which may be another one now."""
    if old_base.resolve() == pathlib.Path(base).resolve():
        return
    for holder, field in [(new, name) for name in _PATHS] + [(new.get(kind, {}), "codeDirectory") for kind in ("tuner", "assessor")]:
        if field in holder:
            holder[field] = str((old_base / pathlib.Path(holder[field]).expanduser()).resolve())


def _check_code_directory(new, base, notes):
    directory = new.get("trialCodeDirectory", ".")
    if not (pathlib.Path(base) / pathlib.Path(directory).expanduser()).is_dir():
        notes.append(f'trialCodeDirectory "{directory}" is no folder here (with AdaptDL it was one of the image): it must be, '
                     "under the same path on all agents")
