"""Functions that are sent to another process, with the lines of their files: tracebacks there show them."""
import io
import linecache
import os
import pickle
import types

_UNNAMED = "<dynamic-code>"  # cloudpickle's name for every file


def dumps(function):
    """The function as cloudpickle has it, but for the names of files, and then the text of these files by name."""
    import cloudpickle

    class Pickler(cloudpickle.Pickler):
        files = {}  # the names by which they are sent

        def reducer_override(self, obj):
            if not isinstance(obj, types.CodeType):
                return super().reducer_override(obj)
            make, parts = self.dispatch_table[types.CodeType](obj)
            name = self.files.setdefault(obj.co_filename, _name_of(obj.co_filename))
            return make, tuple(name if part in (_UNNAMED, obj.co_filename) else part for part in parts)

    with io.BytesIO() as file:
        pickler = Pickler(file)
        pickler.dump(function)
        texts = {name: "".join(linecache.getlines(path)) for path, name in pickler.files.items()}
        pickle.dump({name: text for name, text in texts.items() if text}, file)
        return file.getvalue()


def loads(pickled):
    file = io.BytesIO(pickled)
    function = pickle.load(file)
    try:
        texts = pickle.load(file)
    except EOFError:  # of a release that sent the function alone
        texts = {}
    for name, text in texts.items():
        linecache.cache[name] = len(text), None, text.splitlines(True), name
    return function


def _name_of(path):
    """A notebook's cells are files that do not exist, in a folder that each kernel names otherwise."""
    return os.path.abspath(path) if os.path.isfile(path) else os.path.basename(path)
