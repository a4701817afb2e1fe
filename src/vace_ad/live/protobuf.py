"""Messages of Protocol Buffers out of tables of their fields, compiled by protobuf itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vace_ad.errors import needs

# By message and field: its number, and its type ("DOUBLE") or the message that it repeats.
Messages = Mapping[str, Mapping[str, tuple[int, str]]]


def message_class(messages: Messages, syntax: str, extra: str, purpose: str) -> Any:
    """The class of the last message of a table; fields that the table leaves out are skipped."""
    with needs("protobuf", extra, purpose):
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="table.proto", syntax=syntax)
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for key, (number, kind) in fields.items():
            one = message.field.add(name=key, number=number, label=kinds.LABEL_OPTIONAL)
            if kind in messages:
                one.label, one.type, one.type_name = kinds.LABEL_REPEATED, kinds.TYPE_MESSAGE, kind
            else:
                one.type = kinds.Type.Value(f"TYPE_{kind}")
    pool = descriptor_pool.DescriptorPool()  # of its own: names cannot clash with other packages
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
