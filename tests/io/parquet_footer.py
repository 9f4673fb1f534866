# SPDX-License-Identifier: Apache-2.0
"""Footers of Parquet files as trees that can be changed and written again (Thrift's compact protocol), for damage that
random bytes rarely do. A struct is a list of [field number, type, value], a list is [type of its items, items].
"""

import random
import struct

TRUE, FALSE, BYTE, TEXT, LIST, STRUCT = 1, 2, 3, 8, 9, 12
WHOLE = (4, 5, 6)
NUMBERS = [0, 1, -1, 2, 5, 7, 127, 255, 65536, 2**24, 2**31 - 1, -(2**31), 2**40, 2**62, 2**63 - 1, -(2**63)]


def split(data):
    """Return what comes before the footer, and the footer as a tree."""
    (length,) = struct.unpack("<I", data[-8:-4])
    return data[: -8 - length], _read(data[-8 - length : -8], 0, STRUCT)[0]


def join(body, tree):
    """Return the file, the length of the footer set right."""
    footer = _write(tree, STRUCT)
    return body + footer + struct.pack("<I", len(footer)) + b"PAR1"


def entry(fields, number):
    """Return [number, type, value] of a struct's field."""
    return next(each for each in fields if each[0] == number)


def chunk(tree, group=0, column=0):
    """Return the ColumnMetaData of a column in a row group."""
    columns = entry(entry(tree, 4)[2][1][group], 1)[2][1]
    return entry(columns[column], 3)[2]


def mutate(tree, rng: random.Random):
    """Change one thing, anywhere."""
    holder, key, kind, siblings = rng.choice(_places(tree))
    value, how = holder[key], rng.random()
    if how < 0.15 and siblings is not holder:
        siblings.remove(holder)
    elif how < 0.2 and siblings is not holder:
        siblings.insert(rng.randrange(len(siblings) + 1), list(holder))
    elif kind in WHOLE:
        holder[key] = rng.choice(NUMBERS) if how < 0.8 else value + rng.choice([-1, 1, 8, 100])
    elif kind == TEXT:
        cut = value[: rng.randrange(len(value) + 1)]
        holder[key] = cut if how < 0.6 else cut + rng.randbytes(rng.choice([1, 4, 300]))
    elif kind == LIST and value[1]:
        del value[1][rng.randrange(len(value[1])) :]
    elif kind == STRUCT and siblings is not holder:
        holder[0] = rng.randrange(1, 20)


def _places(tree):
    """List where each value stands: (its holder, index in it, type, the list that the holder or value is in)."""
    found, left = [], [(tree, STRUCT)]
    while left:
        value, kind = left.pop()
        if kind == STRUCT:
            found += [(each, 2, each[1], value) for each in value]
            left += [(each[2], each[1]) for each in value]
        elif kind == LIST:
            found += [(value[1], k, value[0], value[1]) for k in range(len(value[1]))]
            left += [(each, value[0]) for each in value[1]]
    return found


def _read_number(data, at):
    number = shift = 0
    while True:
        number |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return number, at


def _read_whole(data, at):
    number, at = _read_number(data, at)
    return (number >> 1) ^ -(number & 1), at


def _read(data, at, kind):
    if kind in (TRUE, FALSE):
        return kind == TRUE, at
    if kind == BYTE:
        return data[at], at + 1
    if kind in WHOLE:
        return _read_whole(data, at)
    if kind == TEXT:
        length, at = _read_number(data, at)
        return data[at : at + length], at + length
    if kind == LIST:
        return _read_list(data, at)
    assert kind == STRUCT, kind
    fields, number = [], 0
    while data[at]:
        step, kind = data[at] >> 4, data[at] & 15
        number, at = (number + step, at + 1) if step else _read_whole(data, at + 1)
        value, at = _read(data, at, kind)
        fields.append([number, kind, value])
    return fields, at + 1


def _read_list(data, at):
    length, kind = data[at] >> 4, data[at] & 15
    length, at = _read_number(data, at + 1) if length == 15 else (length, at + 1)
    items = []
    for _ in range(length):
        value, at = (data[at], at + 1) if kind in (TRUE, FALSE) else _read(data, at, kind)
        items.append(value)
    return [kind, items], at


def _number(number):
    number &= 2**64 - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def _write(value, kind):
    if kind in (TRUE, FALSE):
        return b""
    if kind == BYTE:
        return bytes([value])
    if kind in WHOLE:
        return _number((value << 1) ^ (value >> 63))
    if kind == TEXT:
        return _number(len(value)) + value
    if kind == LIST:
        kind, items = value
        head = bytes([len(items) << 4 | kind]) if len(items) < 15 else bytes([240 | kind]) + _number(len(items))
        return head + b"".join(bytes([each]) if kind in (TRUE, FALSE) else _write(each, kind) for each in items)
    out, before = b"", 0
    for number, kind, each in value:
        kind = kind if kind not in (TRUE, FALSE) else TRUE if each else FALSE
        short = 0 < number - before < 16
        out += bytes([(number - before) << 4 | kind]) if short else bytes([kind]) + _number(number << 1)
        out, before = out + _write(each, kind), number
    return out + b"\0"
