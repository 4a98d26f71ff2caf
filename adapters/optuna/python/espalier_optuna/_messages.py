"""The messages of espalier.v1.Slots, as in tuner/proto/slots.proto.

They are described here, not generated: code that protoc generates works with few versions of the protobuf runtime, and which
one is installed is for the user's Optuna to say.
"""
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_Field = descriptor_pb2.FieldDescriptorProto
_PACKAGE = "espalier.v1"
_MESSAGES = {
    "Gpu": [("name", 1, _Field.TYPE_STRING), ("uuid", 2, _Field.TYPE_STRING), ("memory_bytes", 3, _Field.TYPE_INT64)],
    "AcquireSlotsRequest": [("trial_id", 1, _Field.TYPE_INT64), ("slots", 2, _Field.TYPE_INT32),
                            ("node", 3, _Field.TYPE_STRING), ("wait_s", 4, _Field.TYPE_DOUBLE)],
    "TrialSlotsRequest": [("trial_id", 1, _Field.TYPE_INT64)],
    "HeldSlot": [("node", 1, _Field.TYPE_STRING), ("index", 2, _Field.TYPE_INT32), ("gpu", 3, "Gpu")],
    "HeldSlots": [("slots", 1, ["HeldSlot"]), ("lease_s", 2, _Field.TYPE_DOUBLE), ("waits_for", 3, _Field.TYPE_STRING)],
    "ReleaseSlotsResponse": [],
}


def _build():
    file = descriptor_pb2.FileDescriptorProto(name="espalier_optuna/slots.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            added = message.field.add(name=field, number=number, label=_Field.LABEL_OPTIONAL)
            if isinstance(kind, list):
                added.label = _Field.LABEL_REPEATED
                kind = kind[0]
            if isinstance(kind, str):
                added.type = _Field.TYPE_MESSAGE
                added.type_name = f".{_PACKAGE}.{kind}"
            else:
                added.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _MESSAGES}


_CLASSES = _build()
AcquireSlotsRequest = _CLASSES["AcquireSlotsRequest"]
TrialSlotsRequest = _CLASSES["TrialSlotsRequest"]
HeldSlots = _CLASSES["HeldSlots"]
ReleaseSlotsResponse = _CLASSES["ReleaseSlotsResponse"]
