"""Study files (tuner/study_file/README.md) as clients hand them to a service."""
import json
import os
import pathlib
import re

from espalier.errors import UsageError


def load(study):
    """The study of a dict, or of a file's path. What a file names is taken from its folder, of a dict from the
    current one, and the service is told whole paths."""
    if isinstance(study, dict):
        return _with_paths(dict(study), pathlib.Path.cwd())
    if not isinstance(study, (str, os.PathLike)):
        raise UsageError(f"study {study!r}: must be a dict, or the path of a study file")
    path = pathlib.Path(study)
    spec = _read(path)
    if not isinstance(spec, dict):
        raise UsageError(f"{path}: a study file holds one JSON object, not a {type(spec).__name__}")
    spec.setdefault("name", path.name.removesuffix(".json"))
    return _with_paths(spec, path.absolute().parent)


def keys_given(keys, taken):
    """Keys of a study file that were given as keywords, with whole paths. `taken`: those that the function takes in
    another way, and how."""
    for key, instead in taken.items():
        if key in keys:
            raise UsageError(f"{key}={keys[key]!r}: leave it out: {instead}")
    return with_needs(dict(keys), pathlib.Path.cwd())


def with_needs(spec, folder):
    """The study, which needs files that are named as seen from the folder."""
    if isinstance(spec.get("needs"), dict):
        spec["needs"] = {str(folder / name): remedy for name, remedy in spec["needs"].items()}
    return spec


def _with_paths(spec, folder):
    if isinstance(spec.get("search_space"), (str, os.PathLike)):
        spec["search_space"] = _read(folder / spec["search_space"])
    with_needs(spec, folder)
    if not spec.get("ask_and_tell") and isinstance(spec.get("directory", ""), (str, os.PathLike)):
        spec["directory"] = os.path.normpath(folder / spec.get("directory", ""))
    return spec


def _read(path):
    try:
        return json.loads(_without_comments(path.read_text()), object_pairs_hook=_without_doubles(path))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from error


def _without_comments(text):
    """With blanks in their place, so that errors name the lines and columns of the file."""
    return re.sub(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/',
                  lambda found: found[0] if found[0][0] == '"' else re.sub(r"[^\n]", " ", found[0]), text, flags=re.DOTALL)


def _without_doubles(path):
    def read(pairs):
        names = [name for name, _ in pairs]
        double = next((name for name in names if names.count(name) > 1), None)
        if double is not None:
            raise UsageError(f'{path}: key "{double}" appears twice')
        return dict(pairs)
    return read
