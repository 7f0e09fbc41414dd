# SPDX-License-Identifier: GPL-2.0-or-later
"""The messages of pprof's profile.proto (package perftools.profiles), as far as kdelta writes them.

From the format's documentation: fields by number and type. No .proto and no code made from one is
kept, since protobuf's run time can be told of messages as well.
"""

from collections.abc import Mapping
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "perftools.profiles"
_FIELD = descriptor_pb2.FieldDescriptorProto

_SCALARS = {
    "int64": _FIELD.TYPE_INT64,
    "uint64": _FIELD.TYPE_UINT64,
    "bool": _FIELD.TYPE_BOOL,
    "string": _FIELD.TYPE_STRING,
}

_MESSAGES: Mapping[str, Mapping[str, tuple[int, str]]] = {
    # A field's number and type; "*" repeats it. What a field named ..._index, or int64 of a name,
    # means is an index into string_table.
    "Profile": {
        "sample_type": (1, "*ValueType"),
        "sample": (2, "*Sample"),
        "mapping": (3, "*Mapping"),
        "location": (4, "*Location"),
        "function": (5, "*Function"),
        "string_table": (6, "*string"),
        "comment": (13, "*int64"),
        "default_sample_type": (14, "int64"),
    },
    "ValueType": {"type": (1, "int64"), "unit": (2, "int64")},
    "Sample": {
        "location_id": (1, "*uint64"),  # leaf first
        "value": (2, "*int64"),  # one of each sample_type
        "label": (3, "*Label"),
    },
    "Label": {"key": (1, "int64"), "str": (2, "int64")},
    "Mapping": {
        "id": (1, "uint64"),
        "memory_start": (2, "uint64"),
        "memory_limit": (3, "uint64"),
        "filename": (5, "int64"),
        "has_functions": (7, "bool"),
        "has_filenames": (8, "bool"),
        "has_line_numbers": (9, "bool"),
        "has_inline_frames": (10, "bool"),
    },
    "Location": {
        "id": (1, "uint64"),
        "mapping_id": (2, "uint64"),
        "address": (3, "uint64"),
        "line": (4, "*Line"),
    },
    "Line": {"function_id": (1, "uint64"), "line": (2, "int64")},
    "Function": {
        "id": (1, "uint64"),
        "name": (2, "int64"),
        "system_name": (3, "int64"),
        "filename": (4, "int64"),
        "start_line": (5, "int64"),
    },
}


def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(
        name="kdelta/profile.proto", package=_PACKAGE, syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            plain = kind.removeprefix("*")
            repeated = _FIELD.LABEL_REPEATED if kind != plain else _FIELD.LABEL_OPTIONAL
            one = message.field.add(name=field, number=number, label=repeated)
            if plain in _SCALARS:
                one.type = _SCALARS[plain]
            else:
                one.type, one.type_name = _FIELD.TYPE_MESSAGE, f".{_PACKAGE}.{plain}"
    return file


def _profile_class() -> Any:
    # A pool of its own: another program's profile.proto in the same process is not in the way.
    pool = descriptor_pool.DescriptorPool()
    pool.Add(_file())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.Profile"))


PROFILE = _profile_class()
"""Makes an empty Profile message."""
