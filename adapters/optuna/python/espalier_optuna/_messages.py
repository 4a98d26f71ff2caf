"""The messages of espalier.v1.Slots, as in tuner/proto/slots.proto, and those of espalier.v1.Tuner that an objective
needs, as in tuner/proto/tuner.proto: of each the fields that are used here.

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
    "TextByName": [("key", 1, _Field.TYPE_STRING), ("value", 2, _Field.TYPE_STRING)],  # an entry of a map
    "CreateStudyRequest": [("study_json", 1, _Field.TYPE_STRING), ("directory", 2, _Field.TYPE_STRING),
                           ("exist_ok", 3, _Field.TYPE_BOOL)],
    "Study": [("name", 2, _Field.TYPE_STRING), ("state", 3, _Field.TYPE_INT32)],
    "GetStudyRequest": [("name", 1, _Field.TYPE_STRING), ("active_only", 2, _Field.TYPE_BOOL),
                        ("without_values", 3, _Field.TYPE_BOOL)],
    "StudyDetails": [("study", 1, "Study")],
    "EnqueueRequest": [("study", 1, _Field.TYPE_STRING), ("parameters", 2, _Field.TYPE_STRING),
                       ("user_attributes", 3, ["TextByName"]), ("request_key", 4, _Field.TYPE_STRING)],
    "TrialId": [("trial_id", 1, _Field.TYPE_INT64)],
    "IntermediateValue": [("step", 1, _Field.TYPE_INT64), ("value", 2, _Field.TYPE_DOUBLE)],
    "TrialRecord": [("trial_id", 1, _Field.TYPE_INT64), ("number", 3, _Field.TYPE_INT64), ("state", 4, _Field.TYPE_INT32),
                    ("values", 6, [_Field.TYPE_DOUBLE]), ("intermediate_values", 7, ["IntermediateValue"]),
                    ("reason", 13, _Field.TYPE_STRING)],
    "CancelTrialRequest": [("trial_id", 1, _Field.TYPE_INT64), ("state", 2, _Field.TYPE_INT32),
                           ("reason", 3, _Field.TYPE_STRING)],
    "TrialOutputRequest": [("trial_id", 1, _Field.TYPE_INT64), ("max_bytes", 2, _Field.TYPE_INT64)],
    "TrialOutput": [("text", 1, _Field.TYPE_BYTES)],
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
TextByName = _CLASSES["TextByName"]
CreateStudyRequest = _CLASSES["CreateStudyRequest"]
Study = _CLASSES["Study"]
GetStudyRequest = _CLASSES["GetStudyRequest"]
StudyDetails = _CLASSES["StudyDetails"]
EnqueueRequest = _CLASSES["EnqueueRequest"]
TrialId = _CLASSES["TrialId"]
TrialRecord = _CLASSES["TrialRecord"]
CancelTrialRequest = _CLASSES["CancelTrialRequest"]
TrialOutputRequest = _CLASSES["TrialOutputRequest"]
TrialOutput = _CLASSES["TrialOutput"]
