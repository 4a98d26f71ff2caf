"""What trials have written on Ray's machines, brought together in one folder."""
import os
import pathlib
import tarfile
import tempfile


def gather(machines, study, folder):
    """Of all nodes that run; where several have a file of the same name, the newest."""
    for chunks in machines.pack(study):
        with tempfile.TemporaryFile() as archive:
            archive.writelines(chunks)
            unpack(archive, folder)


def pack(folder, archive):
    """All that is in the folder, as a tar file; returns its size."""
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for path in sorted(folder.iterdir()):
            tar.add(path, path.name)
    return archive.tell()


def unpack(archive, folder):
    """The files of a tar file; a newer one that is there already stays."""
    folder = pathlib.Path(folder).absolute()
    archive.seek(0)
    with tarfile.open(fileobj=archive) as tar:
        for member in tar:
            path = pathlib.Path(os.path.normpath(folder / member.name))
            # Trials choose the names.
            if not member.isfile() or folder not in path.parents or _is_newer(path, member.mtime):
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(tar.extractfile(member).read())
            path.chmod(member.mode & 0o777 | 0o600)
            os.utime(path, (member.mtime, member.mtime))


def _is_newer(path, mtime):
    return path.exists() and path.stat().st_mtime >= mtime
