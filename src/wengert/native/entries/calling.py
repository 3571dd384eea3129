"""What runs when an entry is called: look for a variant that the arguments suit, make its results, run its kernel.

One function serves all entries; what a variant asks of its arguments is a table of NODEs. It uses functions that Python
and NumPy export and the structures of their public headers. Between the moment when arguments are compared and the end
of the kernel no Python code runs, unless memory is allocated by somebody's. A variant is held while it runs, and so is
what was found in containers, which other threads could empty.
"""

from __future__ import annotations

from wengert.native.builder import Builder
from wengert.native.entries.tables import ENTRY, FRAME, MANY_VARIANTS, NODE, PIECE, VARIANT, Way
from wengert.native.functions import external, native
from wengert.native.objects import ARRAY, DTYPE, OBJECT
from wengert.native.structs import BOOL, F64, I8, I32, I64, POINTER, VOID, Pointer
from wengert.native.values import Value
from wengert.support.machine import MACHINE

EQUAL = 2  # Py_EQ
C_ORDER, SAME_ORDER = 0, 2  # NPY_CORDER, NPY_KEEPORDER
COUNT = (1 << 63) - 1  # the bit above says that the place before the arguments may be used

hold = external("Py_IncRef", VOID, POINTER)
drop = external("Py_DecRef", VOID, POINTER)
vectorcall = external("PyObject_Vectorcall", POINTER, POINTER, POINTER, I64, POINTER)
bound = external("PyMethod_New", POINTER, POINTER, POINTER)
save_thread = external("PyEval_SaveThread", POINTER)
restore_thread = external("PyEval_RestoreThread", VOID, POINTER)
met_error = external("PyErr_Occurred", POINTER)
no_memory = external("PyErr_NoMemory", POINTER)
misused = external("PyErr_BadInternalCall", VOID)
tuple_size = external("PyTuple_Size", I64, POINTER)
tuple_item = external("PyTuple_GetItem", POINTER, POINTER, I64)
list_size = external("PyList_Size", I64, POINTER)
list_item = external("PyList_GetItem", POINTER, POINTER, I64)
dict_size = external("PyDict_Size", I64, POINTER)
attributes_of = external("PyObject_GenericGetDict", POINTER, POINTER, POINTER)
dict_next = external("PyDict_Next", I32, POINTER, Pointer(I64), Pointer(POINTER), Pointer(POINTER))
is_true = external("PyObject_IsTrue", I32, POINTER)
int_value = external("PyLong_AsLongLongAndOverflow", I64, POINTER, Pointer(I32))
compare = external("PyObject_RichCompareBool", I32, POINTER, POINTER, I32)
new_tuple = external("PyTuple_New", POINTER, I64)
set_tuple_item = external("PyTuple_SetItem", I32, POINTER, I64, POINTER)
new_list = external("PyList_New", POINTER, I64)
set_list_item = external("PyList_SetItem", I32, POINTER, I64, POINTER)
new_dict = external("PyDict_New", POINTER)
set_dict_item = external("PyDict_SetItem", I32, POINTER, POINTER, POINTER)
attribute = external("PyObject_GenericGetAttr", POINTER, POINTER, POINTER)
set_attribute = external("PyObject_GenericSetAttr", I32, POINTER, POINTER, POINTER)
call_with = external("PyObject_Call", POINTER, POINTER, POINTER, POINTER)
clear_error = external("PyErr_Clear", VOID)
new_float = external("PyFloat_FromDouble", POINTER, F64)
new_int = external("PyLong_FromLongLong", POINTER, I64)
new_bool = external("PyBool_FromLong", POINTER, I64)
new_complex = external("PyComplex_FromDoubles", POINTER, F64, F64)
new_scalar = external("PyArray_Scalar", POINTER, POINTER, POINTER, POINTER)
new_array = external(
    "PyArray_NewFromDescr", POINTER, POINTER, POINTER, I32, Pointer(I64), Pointer(I64), POINTER, I32, POINTER
)
new_copy = external("PyArray_NewCopy", POINTER, POINTER, I32)
allocate = external("aligned_alloc", POINTER, I64, I64)
allocate_room = external("malloc", POINTER, I64)
free = external("free", VOID, POINTER)
copy = external("memcpy", POINTER, POINTER, POINTER, I64)
compare_bytes = external("memcmp", I32, POINTER, POINTER, I64)


@native(POINTER, Pointer(ENTRY), Pointer(POINTER), I64, POINTER)
def call(b: Builder, called: Value, arguments: Value, flagged: Value, names: Value) -> None:
    """Be the vectorcall function of entries: run the first variant that suits, or the class's own `__call__`."""
    result = b.stack(POINTER)
    with b.when(b.call(attempt, called, arguments, flagged & COUNT, names, result)):
        b.give(result.load())
    b.give(b.call(call_python, called, arguments, flagged, names))


@native(BOOL, Pointer(ENTRY), Pointer(POINTER), I64, POINTER, Pointer(POINTER))
def attempt(b: Builder, called: Value, arguments: Value, positional: Value, names: Value, result: Value) -> None:
    """Run the first variant that suits, if one does; what it has on the stack is gone when Python runs."""
    frame, place = b.stack(FRAME), b.stack(Pointer(POINTER))
    place.store(called.field("first"))
    with b.forever():
        referring = place.load()
        variant = referring.load().to(VARIANT)
        b.give_if(variant.equals(None), False)
        size, own = variant.get("room"), b.stack(POINTER)
        own.store(None)
        with b.when(size.differs(0)):
            own.store(b.call(allocate_room, size))
            b.give_if(own.load().equals(None), False)
        b.do(divide_room, variant, frame, b.select(size.equals(0), frame.field("room").as_address(), own.load()))
        with b.when(b.call(suits, variant, arguments, positional, names, frame)):
            with b.when(referring.differs(called.field("first"))):  # next time it comes first
                referring.store(variant.get("next"))
                variant.set("next", called.get("first"))
                called.set("first", variant)
            is_all = b.call(run, variant, frame, result)
            with b.when(size.differs(0)):
                b.do(free, own.load())
            b.give(is_all)
        with b.when(size.differs(0)):
            b.do(free, own.load())
        place.store(variant.field("next"))


@native(VOID, Pointer(VARIANT), Pointer(FRAME), POINTER)
def divide_room(b: Builder, variant: Value, frame: Value, room: Value) -> None:
    """Note where the numbers, addresses and objects of a call have room."""
    leaves, words = variant.get("inputs") + variant.get("outputs"), room.to(I64)
    frame.set("holds", variant.get("holds"))
    frame.set("numbers", words)
    frame.set("addresses", words.at(leaves * 2).as_address().to(POINTER))
    frame.set("objects", words.at(leaves * 3 + 1).as_address().to(POINTER))


@native(POINTER, Pointer(ENTRY), Pointer(POINTER), I64, POINTER)
def call_python(b: Builder, called: Value, arguments: Value, flagged: Value, names: Value) -> None:
    """Call what the class of an entry says for arguments that suit no variant."""
    function = called.get("fallback")
    with b.when(function.equals(None)):  # the entry is being collected
        b.do(misused)
        b.give(None)
    method = b.call(bound, function, called)
    b.give_if(method.equals(None), None)
    result = b.call(vectorcall, method, arguments, flagged, names)
    b.do(drop, method)
    b.give(result)


@native(I32, Pointer(ENTRY), Pointer(VARIANT))
def insert(b: Builder, called: Value, variant: Value) -> None:
    """Put a variant before the others of an entry; forget the one used least recently if there are many."""
    b.do(hold, variant)
    variant.set("next", called.get("first"))
    called.set("first", variant)
    last = b.stack(Pointer(VARIANT))
    last.store(variant)
    with b.loop(MANY_VARIANTS - 1):
        following = last.load().get("next").to(VARIANT)
        b.give_if(following.equals(None), 0)
        last.store(following)
    forgotten = last.load().get("next")
    with b.when(forgotten.differs(None)):
        last.load().set("next", None)
        b.do(drop, forgotten)
    b.give(0)


# ------------------------------------------------------------------------------------------------ arguments


@native(BOOL, Pointer(VARIANT), Pointer(POINTER), I64, POINTER, Pointer(FRAME))
def suits(b: Builder, variant: Value, arguments: Value, positional: Value, names: Value, frame: Value) -> None:
    """Whether arguments are those of a variant; note where their data lie, and hold them if that is asked for."""
    count, inputs, objects = variant.get("arguments"), variant.get("inputs"), frame.get("objects")
    b.give_if(positional.differs(variant.get("positional")) | variant.get("kept").equals(None), False)
    with b.when(names.equals(None)) as otherwise:
        b.give_if(count.differs(positional), False)
    with otherwise:
        b.give_if(b.call(tuple_size, names).differs(count - positional), False)
        with b.loop(count - positional) as given:
            name, wanted = b.call(tuple_item, names, given.index), variant.get("names").at(given.index).load()
            b.give_if(b.call(is_key, name.to(OBJECT), wanted.to(OBJECT)).equals(False), False)
    holds, nodes = frame.get("holds").differs(0), variant.get("nodes").to(NODE)
    with b.when(holds), b.loop(inputs) as each:
        objects.at(each.index).store(None)
    others = nodes.at(count), variant.get("captured"), variant.get("others")
    with (
        b.when(b.call(all_match, nodes, arguments, count, frame)),
        b.when(b.call(all_match, *others, frame)),
        b.when(b.call(are_apart, variant, frame)),
    ):
        b.give(True)
    with b.when(holds):
        b.do(drop_all, objects, inputs)
    b.give(False)


@native(BOOL, Pointer(NODE), Pointer(POINTER), I64, Pointer(FRAME))
def all_match(b: Builder, nodes: Value, things: Value, count: Value, frame: Value) -> None:
    """Whether each of some objects is what its node describes; note where their data lie."""
    with b.loop(count) as each:
        thing = things.at(each.index).load().to(OBJECT)
        b.give_if(b.call(matches, nodes.at(each.index), thing, frame).equals(False), False)
    b.give(True)


@native(BOOL, Pointer(VARIANT), Pointer(FRAME))
def are_apart(b: Builder, variant: Value, frame: Value) -> None:
    """Whether what will be written to shares memory with no other argument."""
    spans, addresses = variant.get("spans"), frame.get("addresses")

    def span_of(place: Value) -> list[Value]:
        ends = spans.at(place * 2)
        return [addresses.at(place).to(I64).load() + end.load() for end in (ends, ends.at(1))]

    with b.loop(variant.get("writes")) as one:
        own = variant.get("written").at(one.index).load()
        low, high = span_of(own)
        with b.loop(variant.get("inputs")) as each:
            begin, end = span_of(each.index)
            b.give_if(each.index.differs(own) & (begin < high) & (low < end), False)
    b.give(True)


@native(VOID, Pointer(POINTER), I64)
def drop_all(b: Builder, objects: Value, count: Value) -> None:
    """Drop the objects that there are."""
    with b.loop(count) as each:
        thing = objects.at(each.index).load()
        with b.when(thing.differs(None)):
            b.do(drop, thing)


@native(BOOL, Pointer(NODE), Pointer(OBJECT), Pointer(FRAME))
def matches(b: Builder, node: Value, thing: Value, frame: Value) -> None:
    """Whether an object is what a node describes; note where its data lie."""
    b.give_if(thing.get("type").differs(node.get("type")), False)
    way, slot = node.get("way"), node.get("slot").widen(I64)
    with b.when(way.equals(Way.ARRAY)):  # first, as most are
        b.give_if(b.call(fits, node, thing.to(ARRAY)).equals(False), False)
        frame.get("objects").at(slot).store(thing)
        with b.when(frame.get("holds").differs(0)):
            b.do(hold, thing)
        frame.get("addresses").at(slot).store(thing.to(ARRAY).get("data"))
        b.give(True)
    b.give_if(way.equals(Way.ANY), True)
    with b.when(way.equals(Way.EQUAL_ARRAY)):
        b.give(b.call(is_equal, node, thing.to(ARRAY)))
    with b.when(way >= Way.TUPLE):  # which is held while it is looked into: attributes may be computed
        b.do(hold, thing)
        found = b.call(contains, node, thing, frame)
        b.do(drop, thing)
        b.give(found)
    with b.when((way >= Way.SAME) & (way <= Way.SAME_BITS)):
        b.give(b.call(is_constant, node, thing))
    address, number = frame.get("addresses").at(slot), frame.get("numbers").at(slot * 2)
    frame.get("objects").at(slot).store(thing)
    with b.when(frame.get("holds").differs(0)):
        b.do(hold, thing)
    with b.when(way.equals(Way.IN_PLACE)):
        address.store(thing.at(1))
        b.give(True)
    address.store(number)
    with b.when(way.equals(Way.BOOL)):
        number.store(b.call(is_true, thing).widen(I64))
        b.give(True)
    beyond = b.stack(I32)
    number.store(b.call(int_value, thing, beyond))
    b.give(beyond.load().equals(0))


@native(BOOL, Pointer(NODE), Pointer(OBJECT))
def is_constant(b: Builder, node: Value, thing: Value) -> None:
    """Whether an object is a node's value, or one of its type that nothing tells from it."""
    value, way = node.get("value").to(OBJECT), node.get("way")
    with b.when(thing.equals(value) | way.equals(Way.SAME)):
        b.give(thing.equals(value))
    with b.when(way.equals(Way.SAME_BITS)):
        b.give(thing.at(1).to(I64).load().equals(value.at(1).to(I64).load()))
    b.give(b.call(compare, thing, value, EQUAL).equals(1))


@native(BOOL, Pointer(NODE), Pointer(ARRAY))
def fits(b: Builder, node: Value, array: Value) -> None:
    """Whether an array has the dtype, the shape and the order that a node describes."""
    flags = node.get("flags")
    lacking = (array.get("flags") & flags).differs(flags)
    b.give_if(lacking | array.get("rank").differs(node.get("rank")), False)
    dtype, own = node.get("dtype").to(DTYPE), array.get("dtype").to(DTYPE)
    with b.when(own.differs(dtype)):  # an unpickled array's, or another
        same = [own.get(field).equals(dtype.get(field)) for field in ("type", "characters", "number")]
        b.give_if((same[0] & same[1] & same[2]).equals(False), False)
    rank, shape, wanted = node.get("rank").widen(I64), array.get("shape"), node.get("shape")
    with b.loop(rank) as axes, b.when(shape.at(axes.index).load().differs(wanted.at(axes.index).load())):
        b.give(False)
    strides = node.get("strides")
    with b.when(strides.differs(None)), b.loop(rank) as axes:
        differs = array.get("strides").at(axes.index).load().differs(strides.at(axes.index).load())
        b.give_if(differs & shape.at(axes.index).load().differs(1), False)
    b.give(True)


@native(BOOL, Pointer(NODE), Pointer(ARRAY))
def is_equal(b: Builder, node: Value, array: Value) -> None:
    """Whether an array is a node's value, or has its elements."""
    value = node.get("value").to(ARRAY)
    b.give_if(array.equals(value), True)
    b.give_if(b.call(fits, node, array).equals(False), False)
    b.give(b.call(compare_bytes, array.get("data"), value.get("data"), node.get("count")).equals(0))


@native(BOOL, Pointer(NODE), Pointer(OBJECT), Pointer(FRAME))
def contains(b: Builder, node: Value, thing: Value, frame: Value) -> None:
    """Whether a tuple, a list, a dictionary or an object holds what a node describes."""
    way, count, items = node.get("way"), node.get("count"), node.get("items").to(NODE)
    with b.when(way.equals(Way.OBJECT)):
        b.give(b.call(has_attributes, node, thing, frame))
    for kind, size, item in ((Way.TUPLE, tuple_size, tuple_item), (Way.LIST, list_size, list_item)):
        with b.when(way.equals(kind)):
            b.give_if(b.call(size, thing).differs(count), False)
            with b.loop(count) as each:
                found = b.call(item, thing, each.index).to(OBJECT)
                with b.when(found.equals(None)):  # it has become shorter
                    b.do(clear_error)
                    b.give(False)
                b.give_if(b.call(matches, items.at(each.index), found, frame).equals(False), False)
            b.give(True)
    b.give_if(b.call(dict_size, thing).differs(count), False)
    place, key, value = b.stack(I64), b.stack(POINTER), b.stack(POINTER)
    place.store(0)
    with b.loop(count) as each:
        b.give_if(b.call(dict_next, thing, place, key, value).equals(0), False)
        wanted = node.get("names").at(each.index).load().to(OBJECT)
        b.give_if(b.call(is_key, key.load().to(OBJECT), wanted).equals(False), False)
        b.give_if(b.call(matches, items.at(each.index), value.load().to(OBJECT), frame).equals(False), False)
    b.give(True)


@native(BOOL, Pointer(OBJECT), Pointer(OBJECT))
def is_key(b: Builder, key: Value, wanted: Value) -> None:
    """Whether a key is the one that is wanted, or an equal one of its type, where no Python compares."""
    b.give_if(key.equals(wanted), True)
    b.give_if(key.get("type").differs(wanted.get("type")), False)
    b.give(b.call(compare, key, wanted, EQUAL).equals(1))


@native(BOOL, Pointer(NODE), Pointer(OBJECT), Pointer(FRAME))
def has_attributes(b: Builder, node: Value, thing: Value, frame: Value) -> None:
    """Whether an object has the attributes that a node describes."""
    count, items, held = node.get("count"), node.get("items").to(NODE), node.get("held")
    with b.when(held >= 0):
        attributes = b.call(attributes_of, thing, None)
        with b.when(attributes.equals(None)):
            b.do(clear_error)
            b.give(False)
        number = b.call(dict_size, attributes)
        b.do(drop, attributes)
        b.give_if(number.differs(held.widen(I64)), False)
    with b.loop(count) as each:
        found = b.call(attribute, thing, node.get("names").at(each.index).load()).to(OBJECT)
        with b.when(found.equals(None)) as otherwise:
            b.do(clear_error)
            b.give_if(items.at(each.index).get("way").differs(Way.ABSENT), False)
        with otherwise:
            is_wanted = b.call(matches, items.at(each.index), found, frame)
            b.do(drop, found)
            b.give_if(is_wanted.equals(False), False)
    b.give(True)


# ------------------------------------------------------------------------------------------------ results


@native(BOOL, Pointer(VARIANT), Pointer(FRAME), Pointer(POINTER))
def run(b: Builder, variant: Value, frame: Value, result: Value) -> None:
    """Run a variant on the arguments that a frame has; leave the result, or nothing after an error.

    Return whether that is all: not if the kernel says that it failed, and Python is to do it. It also fails where an
    error of a handler of signals is to go on.
    """
    b.do(hold, variant)
    inputs, outputs, objects = variant.get("inputs"), variant.get("outputs"), frame.get("objects")
    with b.loop(outputs) as each:
        objects.at(inputs + each.index).store(None)
    failed = frame.field("failed")
    failed.store(0)
    frame.get("addresses").at(inputs + outputs).store(failed)
    result.store(None)
    with (
        b.when(b.call(prepare, variant, frame)),
        b.when(b.call(compute, variant, frame)),
        b.when(failed.load().equals(0)),
        b.when(b.call(box, variant, frame)),
    ):
        with b.loop(variant.get("donations")) as each:
            place, output, size = (variant.get("donated").at(each.index * 3 + k).load() for k in range(3))
            addresses = frame.get("addresses")
            b.do(copy, addresses.at(place).load(), addresses.at(output).load(), size)
        result.store(b.call(assemble_result, variant.get("result").to(NODE), frame))
    b.do(drop_all, objects.at(inputs), outputs)  # what an error has left; the others belong to the result
    with b.when(frame.get("holds").differs(0)):
        b.do(drop_all, objects, inputs)
    b.do(drop, variant)
    b.give_if(failed.load().equals(0), True)
    b.give(b.call(met_error).differs(None))


@native(BOOL, Pointer(VARIANT), Pointer(FRAME))
def prepare(b: Builder, variant: Value, frame: Value) -> None:
    """Make copies of arguments, the arrays of the result, and room for its numbers; return whether there was memory."""
    inputs, nodes = variant.get("inputs"), variant.get("made").to(NODE)
    with b.loop(variant.get("copies")) as each:
        slot = variant.get("copied").at(each.index).load()
        given = frame.get("objects").at(slot).load()
        made = b.call(new_copy, given, C_ORDER)
        b.give_if(made.equals(None), False)
        frame.get("objects").at(slot).store(made)  # which is held in the place of what was given
        b.do(drop, given)
        frame.get("addresses").at(slot).store(made.to(ARRAY).get("data"))
    with b.loop(variant.get("outputs")) as each:
        node, slot = nodes.at(each.index), inputs + each.index
        address = frame.get("addresses").at(slot)
        with b.when(node.get("way").equals(Way.ARRAY)) as otherwise:
            dtype = node.get("dtype")
            b.do(hold, dtype)  # the array takes it over
            described = node.get("rank"), node.get("shape"), node.get("strides")
            made = b.call(new_array, node.get("type"), dtype, *described, None, 0, None)
            b.give_if(made.equals(None), False)
            frame.get("objects").at(slot).store(made)
            address.store(made.to(ARRAY).get("data"))
        with otherwise:
            address.store(frame.get("numbers").at(slot * 2))
            with b.when(node.get("way").equals(Way.IN_PLACE)):
                address.store(frame.get("addresses").at(node.get("count")).load())
    b.give(True)


@native(BOOL, Pointer(VARIANT), Pointer(FRAME))
def compute(b: Builder, variant: Value, frame: Value) -> None:
    """Run the kernel, without the interpreter lock if that is worth while; return whether there is no error.

    That is of memory, or of a handler of signals, which a program says by an output if it is not all of a function.
    Kernels that take long may look up, so that signals are answered and other threads run, all of which may call this;
    so the arena belongs to one call, whether or not it releases the lock, and nobody asks for it without.
    """
    addresses, arena = frame.get("addresses"), variant.get("arena")
    team, busy = b.stack(POINTER), variant.get("busy")
    team.store(None)
    with b.when(variant.get("team").differs(None)):
        team.store(variant.get("team").load())
    with b.when(busy.equals(None)):
        b.do(variant.get("kernel"), addresses, arena, team.load())
        b.give(True)
    copied, generation = b.stack(POINTER), variant.get("generation").load()
    copied.store(None)
    own = busy.load("acquire").differs(generation)
    with b.when(own) as otherwise:
        busy.store(generation)
    with otherwise:  # another thread has the arena, or it is so large that each call has one
        memory = b.call(own_arena, variant)
        b.give_if(memory.equals(None), False)
        copied.store(memory)
    used = b.select(own, arena, copied.load())
    with b.when(variant.get("releases").equals(0)) as otherwise:
        b.do(variant.get("kernel"), addresses, used, team.load())
        with b.when(own):
            busy.store(0)
    with otherwise:
        thread = b.call(save_thread)
        b.do(variant.get("kernel"), addresses, used, team.load())
        with b.when(own):
            busy.store(0, "release")
        b.do(restore_thread, thread)  # does not come back in a daemon's thread where Python has ended
    with b.when(copied.load().differs(None)):
        b.do(free, copied.load())
    b.give(b.call(met_error).equals(None))


@native(POINTER, Pointer(VARIANT))
def own_arena(b: Builder, variant: Value) -> None:
    """Return an arena for one call; none if there is no memory."""
    memory = b.call(allocate, MACHINE.apart, variant.get("size"))
    with b.when(memory.equals(None)):
        b.do(no_memory)
        b.give(None)
    with b.loop(variant.get("count")) as each:
        piece = variant.get("pieces").to(PIECE).at(each.index)
        b.do(copy, memory.to(I8).at(piece.get("place")).as_address(), piece.get("source"), piece.get("size"))
    b.give(memory)


@native(BOOL, Pointer(VARIANT), Pointer(FRAME))
def box(b: Builder, variant: Value, frame: Value) -> None:
    """Make objects of the numbers among the results; return whether there was memory."""
    inputs, nodes = variant.get("inputs"), variant.get("made").to(NODE)
    with b.loop(variant.get("outputs")) as each:
        node, slot = nodes.at(each.index), inputs + each.index
        with b.when(node.get("way").differs(Way.ARRAY) & node.get("way").differs(Way.IN_PLACE)):
            made = b.call(box_number, node, frame.get("numbers").at(slot * 2))
            b.give_if(made.equals(None), False)
            frame.get("objects").at(slot).store(made)
    b.give(True)


@native(POINTER, Pointer(NODE), Pointer(I64))
def box_number(b: Builder, node: Value, number: Value) -> None:
    """Return a number as an object."""
    way, real = node.get("way"), number.to(F64)
    with b.when(way.equals(Way.FLOAT)):
        b.give(b.call(new_float, real.load()))
    with b.when(way.equals(Way.SCALAR)):
        b.give(b.call(new_scalar, number, node.get("dtype"), None))
    with b.when(way.equals(Way.INT)):
        b.give(b.call(new_int, number.load()))
    with b.when(way.equals(Way.BOOL)):
        b.give(b.call(new_bool, number.to(I8).load().widen(I64)))
    b.give(b.call(new_complex, real.load(), real.at(1).load()))


@native(POINTER, Pointer(NODE), Pointer(FRAME))
def assemble_result(b: Builder, node: Value, frame: Value) -> None:
    """Return a result: an array or number that was made, a known object or a copy of it, or a container of results."""
    way, count, items = node.get("way"), node.get("count"), node.get("items").to(NODE)
    with b.when(way < Way.SAME):
        place = frame.get("objects").at(node.get("slot").widen(I64))
        made = place.load()
        place.store(None)
        b.give(made)
    with b.when(way.equals(Way.SAME)):
        b.do(hold, node.get("value"))
        b.give(node.get("value"))
    with b.when(way.equals(Way.COPY)):
        b.give(b.call(new_copy, node.get("value"), SAME_ORDER))
    is_called = way.equals(Way.CALLED)
    for is_made, new, set_item in (
        (way.equals(Way.TUPLE) | is_called, new_tuple, set_tuple_item),
        (way.equals(Way.LIST), new_list, set_list_item),
    ):
        with b.when(is_made):
            several = b.call(new, count)
            b.give_if(several.equals(None), None)
            with b.loop(count) as each:
                item = b.call(assemble_result, items.at(each.index), frame)
                with b.when(item.equals(None)):
                    b.do(drop, several)
                    b.give(None)
                b.do(set_item, several, each.index, item)
            with b.when(is_called):
                named = b.call(call_with, node.get("type"), several, None)
                b.do(drop, several)
                b.give(named)
            b.give(several)
    b.give(b.call(assembled_by_name, node, frame))


@native(POINTER, Pointer(NODE), Pointer(FRAME))
def assembled_by_name(b: Builder, node: Value, frame: Value) -> None:
    """Return a dictionary of results, or an object whose attributes they are."""
    items, is_object, several = node.get("items").to(NODE), node.get("way").equals(Way.OBJECT), b.stack(POINTER)
    with b.when(is_object) as otherwise:
        kind = b.stack(POINTER)
        kind.store(node.get("type"))
        several.store(b.call(vectorcall, node.get("value"), kind, 1, None))
    with otherwise:
        several.store(b.call(new_dict))
    b.give_if(several.load().equals(None), None)
    with b.loop(node.get("count")) as each, b.when(items.at(each.index).get("way").differs(Way.ABSENT)):
        item, name, failed = b.call(assemble_result, items.at(each.index), frame), b.stack(POINTER), b.stack(I32)
        with b.when(item.equals(None)):
            b.do(drop, several.load())
            b.give(None)
        name.store(node.get("names").at(each.index).load())
        with b.when(is_object) as otherwise:
            failed.store(b.call(set_attribute, several.load(), name.load(), item))
        with otherwise:
            failed.store(b.call(set_dict_item, several.load(), name.load(), item))
        b.do(drop, item)
        with b.when(failed.load().differs(0)):
            b.do(drop, several.load())
            b.give(None)
    b.give(several.load())
