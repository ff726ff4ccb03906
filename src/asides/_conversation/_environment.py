"""Jinja as transformers runs chat templates, with origins kept and with bounds.

The environment has transformers' filters, globals, tags and sandbox, so that a template writes the same text here. On
top of that it joins strings with their origins (`_origin`, `_filters`) and writes down each loss that is left. Three
things are added to the compiled code: where a loop over messages stands, so that what is written there is known to
belong to that message; what a loop goes through, a comparison looks at and a slice copies; and how much stands in the
body of a loop, a macro or a block. So all that a template does is counted (`_budget`), and none runs for ever.
What is rendered and what it means is for `_template`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import wraps
from types import GeneratorType
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame, operators
from jinja2.exceptions import SecurityError, TemplateError
from jinja2.ext import Extension
from jinja2.runtime import BlockReference, LoopContext, Macro, markup_join
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedFormatter
from jinja2.utils import Namespace
from jinja2.utils import generate_lorem_ipsum as lipsum
from markupsafe import Markup

from ._budget import (
    CALL,
    COMPARING,
    CONTAINERS,
    LETTER,
    LOOKUP,
    PIECE,
    STEP,
    VIEWS,
    WorkBudget,
    check_bits,
    check_filter,
    check_format,
    check_method,
    listed_items,
    numbers,
)
from ._filters import FILTERS, KEEP_ORIGINS, OriginMarkup
from ._origin import (
    NOBODY,
    OriginDict,
    OriginFloat,
    OriginInt,
    OriginList,
    OriginText,
    has_origin,
    join,
    one_leaf,
    plain,
    runs_of,
    spread,
)
from ._writing import percent, write


class RenderState(WorkBudget):
    """What is known while one conversation is rendered."""

    __slots__ = ("current", "losses", "number", "outer")

    def __init__(self, limit: int, work: int) -> None:
        super().__init__(limit, work)
        self.current: int | None = None
        """The message that the innermost loop over messages stands at."""
        self.number: int | None = None
        """The number that the innermost loop stands at, where it counts: a template may take messages by it."""
        self.outer: list[tuple[int | None, int | None]] = []
        self.losses: dict[int, str] = {}
        """Leaves of which characters were written without an origin, and what lost it."""

    def lose(self, values: Iterable[Any], what: str) -> None:
        """Write down that these values were written without their origins."""
        for value in values:
            if isinstance(value, str):
                for _, leaf in runs_of(value):
                    if leaf != NOBODY:
                        self.losses.setdefault(leaf, what)


class GeneratedText(OriginText):
    """What stands in `{% generation %}`."""

    __slots__ = ()


class _Generation(Extension):
    """`{% generation %}`: what a model wrote. Text and scopes are the same as without it, as in transformers."""

    tags = {"generation"}  # noqa: RUF012 - as Jinja declares it

    def parse(self, parser: Any) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_written"), [], [], body).set_lineno(line)

    def _written(self, caller: Macro) -> str:
        text = caller()
        return GeneratedText(plain(text), runs_of(text))


class _Generator(CodeGenerator):
    """Compiles a template so that the environment hears of every loop, comparison and slice."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._loops: dict[int, nodes.For] = {}
        """Loops by their bodies."""
        self._bodies: dict[int, int] = {}
        """How much stands in a body that may be run many times."""
        self._watched: dict[int, str] = {}
        """Expressions that the environment looks at, and with what."""

    def visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> Any:
        method = self._watched.pop(id(node), None)
        if method is None:
            return super().visit(node, *args, **kwargs)
        self.write(f"environment.{method}(")
        super().visit(node, *args, **kwargs)
        self.write(")")

    def visit_Template(self, node: nodes.Template, frame: Frame | None = None) -> None:
        for inner in node.find_all(_REPEATED):
            assert isinstance(inner, _REPEATED)
            self._bodies[id(inner.body)] = sum(_weight(each) for each in inner.body)
        super().visit_Template(node, frame)

    def visit_For(self, node: nodes.For, frame: Frame) -> None:
        self._loops[id(node.body)] = node
        self._watched[id(node.iter)] = "iterated"
        if node.test is not None:
            # What the condition passes over is a loop as well.
            count = nodes.Call(nodes.EnvironmentAttribute("passes"), [], [], None, None, lineno=node.lineno)
            node.test = nodes.And(count, node.test, lineno=node.lineno).set_environment(self.environment)
        self.writeline("environment.enter_loop()")
        super().visit_For(node, frame)
        self.writeline("environment.leave_loop()")

    def visit_Const(self, node: nodes.Const, frame: Frame) -> None:
        if isinstance(node.value, int):
            check_bits(node.value.bit_length())
        super().visit_Const(node, frame)

    def visit_Compare(self, node: nodes.Compare, frame: Frame) -> None:
        if any(operand.op in ("in", "notin") for operand in node.ops):
            self._watched[id(node.expr)] = "comparable"
        super().visit_Compare(node, frame)

    def visit_Operand(self, node: nodes.Operand, frame: Frame) -> None:
        # Python compares lists of lists without asking anyone.
        self.write(f" {operators[node.op]} environment.comparable(")
        self.visit(node.expr, frame)
        self.write(")")

    def visit_Dict(self, node: nodes.Dict, frame: Frame) -> None:
        self._watched |= {id(pair.key): "comparable" for pair in node.items}
        super().visit_Dict(node, frame)

    def visit_Getitem(self, node: nodes.Getitem, frame: Frame) -> None:
        if not isinstance(node.arg, nodes.Slice):
            super().visit_Getitem(node, frame)
            return
        self.write("environment.sliced(")
        super().visit_Getitem(node, frame)
        self.write(")")

    def blockvisit(self, nodes_: Iterable[nodes.Node], frame: Frame) -> None:
        weight = self._bodies.get(id(nodes_))
        loop = self._loops.get(id(nodes_))
        if loop is not None:
            item = frame.symbols.ref(loop.target.name) if isinstance(loop.target, nodes.Name) else "None"
            self.writeline(f"environment.begin_iteration({item}, {weight})")
        elif weight is not None:
            self.writeline(f"environment.state.spend({weight})")
        super().blockvisit(nodes_, frame)


_REPEATED = (nodes.For, nodes.Macro, nodes.CallBlock, nodes.Block)
"""What has a body that may be run many times."""


def _weight(node: nodes.Node) -> int:
    """Units of what stands in a body; what stands in the loops and macros of it counts for itself."""
    below = node.iter_child_nodes(exclude=("body",) if isinstance(node, _REPEATED) else None)
    return 2 + sum(map(_weight, below))


class _OriginTemplate(jinja2.Template):
    """A compiled template whose `~` keeps origins."""

    @classmethod
    def from_code(cls, environment: Any, code: Any, globals: Any, uptodate: Any = None) -> _OriginTemplate:
        namespace: dict[str, Any] = {"environment": environment, "__file__": code.co_filename}
        exec(code, namespace)
        namespace["str_join"] = environment.join_values
        namespace["markup_join"] = environment.join_escaped
        made = cls._from_namespace(environment, namespace, globals)
        assert isinstance(made, _OriginTemplate)
        return made


class _Formatter(SandboxedFormatter):
    """`str.format` for strings with origins."""

    def joined(self, template: str, args: Any, kwargs: Any) -> str | None:
        """The result in origins; None for what is not simple."""
        pieces: list[str] = []
        number = 0
        for literal, field, spec, conversion in self.parse(plain(template)):
            pieces.append(literal)
            if field is None:
                continue
            if "{" in (spec or "") or conversion not in (None, "s"):
                return None
            if field == "" or field[0] in ".[":
                field, number = f"{number}{field}", number + 1
            value = self.get_field(field, args, kwargs)[0]
            pieces.append(write(value) if conversion == "s" or not spec else format(value, spec))
        return join(pieces)


class ChatEnvironment(ImmutableSandboxedEnvironment):
    """The environment in which chat templates are compiled and run."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})
    code_generator_class = _Generator
    template_class = _OriginTemplate

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[_Generation, "jinja2.ext.loopcontrols"],
            finalize=self.written,
        )
        self._local = threading.local()
        self.concat: Callable[[Iterable[str]], str] = self._concat
        self.globals |= {
            "raise_exception": _raise_exception,
            "strftime_now": self._strftime_now,
            "dict": _DictMaker(),
            "namespace": type("namespace", (_ChatNamespace,), {"_environment": self}),
        }
        for name, function in list(self.filters.items()):
            self.filters[name] = self._counted_filter(name, FILTERS.get(name, function))
        for name, function in list(self.tests.items()):
            self.tests[name] = self._counted_test(function)

    @property
    def state(self) -> RenderState:
        """Of the rendering that this thread is at."""
        state: RenderState = self._local.state
        return state

    @state.setter
    def state(self, state: RenderState) -> None:
        self._local.state = state

    # What compiled templates call.

    def enter_loop(self) -> None:
        """A loop begins."""
        state = self.state
        state.outer.append((state.current, state.number))

    def begin_iteration(self, item: object, weight: int) -> None:
        """A loop stands at this item."""
        state = self.state
        state.spend(STEP + weight)
        if isinstance(item, OriginDict) and item.message is not None:
            state.current = item.message
        state.number = item if type(item) is int else None

    def leave_loop(self) -> None:
        """The innermost loop is over."""
        state = self.state
        state.current, state.number = state.outer.pop()

    def passes(self) -> bool:
        """Count an item that a loop may pass over; calling it counts."""
        return True

    def iterated(self, value: Any) -> Any:
        """What a loop goes through; it may ask for the number of items first, and make a list of them."""
        if isinstance(value, str):
            self.state.keep(PIECE * len(value))
        elif isinstance(value, (list, tuple, dict)):
            self.state.spend(len(value))
        return value

    def comparable(self, value: Any) -> Any:
        """What is compared, looked for, or looked into: Python goes through all of it."""
        kind = value.__class__
        if kind is str or kind is OriginText:
            self.state.spend(len(value))
        elif kind in _COMPARED:
            self.state.measure(value)
        elif kind is OriginList:
            self.state.spend(LETTER * len(value))
        return value

    def sliced(self, value: Any) -> Any:
        """A slice that was copied."""
        self.state.made(value)
        return value

    def join_values(self, values: Iterable[Any]) -> str:
        """The operator `~`."""
        return self._concat(map(self.written, values))

    def join_escaped(self, values: Iterable[Any]) -> str:
        """The operator `~` where what is written is escaped."""
        found = list(values)
        self.state.check(self.state.measure(found).size)
        joined = markup_join(found)
        self.state.made(joined)
        return joined

    def written(self, value: Any) -> str:
        """A value as text."""
        # Constants are written while a template is compiled, and are no longer than its source.
        if isinstance(value, CONTAINERS) and hasattr(self._local, "state"):
            self.state.measure(value)
            text = write(value)
            self.state.made(text)
            return text
        return write(value)

    def _concat(self, pieces: Iterable[str]) -> str:
        found = list(pieces)
        self.state.check(sum(map(len, found)))
        joined = join(found)
        self.state.made(joined)
        return joined

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        state = __self.state
        state.spend(CALL)
        if isinstance(__obj, (Macro, LoopContext, BlockReference)):
            return super().call(__context, __obj, *args, **kwargs)
        owner = getattr(__obj, "__self__", None)
        if isinstance(owner, (str, bytes)):
            args = check_method(state, owner, __obj.__name__, args, kwargs)
        elif isinstance(owner, (list, tuple)):
            # They count and find by comparing.
            state.measure(owner, *args)
        elif __obj is lipsum:
            length = 1000 * max(map(abs, numbers(args, kwargs)), default=0)
            state.check(length)
            state.spend(LETTER * length)
        else:
            if isinstance(owner, int):
                state.check(max(numbers(args, kwargs), default=0))
            if args or kwargs:
                args = tuple(map(listed_items, args))
                state.measure(*args, *kwargs.values())
        result = super().call(__context, __obj, *args, **kwargs)
        state.made(result)
        return result

    def getattr(self, obj: Any, attribute: str) -> Any:
        """An attribute, as of the plain value; a method of any string takes strings with origins."""
        kind = type(obj)
        own = _PLAIN_ATTRIBUTES.get(kind)
        if own is None:
            return super().getattr(obj, attribute)
        if attribute not in own:
            # What the classes of origins have beside is none of a template's business.
            if kind is OriginDict:
                found = obj.get(attribute, own)
                return found if found is not own else self.undefined(obj=obj, name=attribute)
            return self.undefined(obj=obj, name=attribute)
        if kind is str:
            obj = OriginText(obj)
        if attribute in _SAFE_METHODS and kind is not OriginDict:
            return getattr(obj, attribute)
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """An item; the message of the number that a loop stands at is the one that the loop stands at."""
        state = self.state
        state.spend(LOOKUP)
        if isinstance(argument, CONTAINERS):
            state.measure(argument)
        elif isinstance(argument, str) and argument in _OWN_NAMES and type(obj) in _PLAIN_ATTRIBUTES:
            # Jinja would look for an attribute where there is no such item.
            return (
                obj[argument] if isinstance(obj, dict) and argument in obj else self.undefined(obj=obj, name=argument)
            )
        found = super().getitem(obj, argument)
        if found.__class__ in _COMPARED:
            # A filter may take it by a path of attributes, and compare it.
            state.measure(found)
        if found.__class__ is OriginDict and argument.__class__ is int and argument == state.number:
            state.current = found.message if found.message is not None else state.current
        return found

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """`+`, `*`, `**` and `%`, with bounds and origins."""
        state = self.state
        if operator == "%":
            if not isinstance(left, (str, bytes)):
                return left % right
            values = right if isinstance(right, tuple) else (right,)
            template = plain(left) if isinstance(left, str) else left.decode("latin-1")
            check_format(state, template, values, once=not isinstance(right, dict))
            result = percent(left, right) if isinstance(left, str) and not isinstance(left, Markup) else left % right
        elif operator == "**":
            if isinstance(left, int) and isinstance(right, int) and abs(left) > 1:
                check_bits(left.bit_length() * right)
            result = left**right
        elif operator == "*":
            for one, other in ((left, right), (right, left)):
                if hasattr(one, "__len__") and isinstance(other, int):
                    state.check(len(one) * other)
                    if one.__class__ is OriginText and other > 0:
                        state.keep(PIECE * len(one.runs) * other)
            if isinstance(left, int) and isinstance(right, int):
                check_bits(left.bit_length() + right.bit_length())
            result = left * right
        else:
            if hasattr(left, "__len__") and hasattr(right, "__len__"):
                state.check(len(left) + len(right))
            result = left + right
        state.made(result)
        return result

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """`str.format`, with origins."""
        wrapped = super().wrap_str_format(value)
        if wrapped is None:
            return None
        template: str = value.__self__
        simple = not isinstance(template, Markup) and value.__name__ == "format"

        def formatted(*args: Any, **kwargs: Any) -> str:
            check_format(self.state, plain(template), (*args, *kwargs.values()))
            result = plain(wrapped(*args, **kwargs)) if simple else wrapped(*args, **kwargs)
            self.state.made(result)
            if not simple:
                return result
            joined = _Formatter(self).joined(template, args, kwargs)
            if joined == result and one_leaf(template) in (NOBODY, None):
                return joined
            self.state.lose((template, *args, *kwargs.values()), "str.format")
            return result

        return formatted

    def _strftime_now(self, format: str) -> str:
        self.state.check(256 * len(format))  # as much as the system may make of it
        return datetime.now().strftime(plain(format))

    def _counted_filter(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """A filter with bounds. What it makes of one leaf keeps it, any other loss of origins is written down."""
        passed = hasattr(function, "jinja_pass_arg")
        keeps = name in KEEP_ORIGINS or name in FILTERS

        @wraps(function)
        def counted(*args: Any, **kwargs: Any) -> Any:
            state = self.state
            if name in COMPARING:
                args = tuple(map(listed_items, args))
            check_filter(state, name, args[passed:], kwargs)
            if name == "format":
                check_format(state, plain(self.written(args[0])), (*args[1:], *kwargs.values()), once=not kwargs)
            result = function(*args, **kwargs)
            if result.__class__ is GeneratorType:
                return self._counted_items(result)
            state.made(result)
            if keeps or not isinstance(result, str) or isinstance(result, OriginText) or not result:
                return result
            sources = [value for value in (*args, *kwargs.values()) if has_origin(value)]
            if not sources:
                return result
            if len(sources) == 1 and isinstance(sources[0], str) and not isinstance(result, Markup):
                made = spread(result, sources[0])
                if isinstance(made, OriginText):
                    return made
            state.lose(map(write, sources), f"the filter {name}")
            return result

        return counted

    def _counted_items(self, items: Iterator[Any]) -> Iterator[Any]:
        state = self.state
        for item in items:
            state.spend(LETTER)
            if item.__class__ is list:
                state.keep(PIECE)
            yield item

    def _counted_test(self, function: Any) -> Callable[..., Any]:
        """A test with bounds: it may compare."""

        @wraps(function)
        def counted(*args: Any, **kwargs: Any) -> Any:
            if len(args) > 1:
                for value in args:
                    self.comparable(value)
            return function(*args, **kwargs)

        return counted


_PLAIN_ATTRIBUTES: dict[type, frozenset[str]] = {
    str: frozenset(dir(str)),
    OriginText: frozenset(dir(str)),
    OriginDict: frozenset(dir(dict)),
    OriginList: frozenset(dir(list)),
    OriginInt: frozenset(dir(int)),
    OriginFloat: frozenset(dir(float)),
    OriginMarkup: frozenset(dir(Markup)),
}
"""For each class the attributes that the value has without origins."""
_OWN_NAMES = frozenset(name for kind, own in _PLAIN_ATTRIBUTES.items() for name in dir(kind) if name not in own)
"""Attributes that only our classes have."""
_COMPARED = frozenset({dict, list, tuple, *VIEWS})
"""What a template makes, and Python goes through all of when it compares or hashes it."""
_SAFE_METHODS = frozenset(name for name in dir(str) if name[0] != "_" and not name.startswith("format"))
"""The methods of strings for which the sandbox has no rule."""


def _raise_exception(message: object) -> None:
    raise TemplateError(plain(str(message)))


class _DictMaker:
    """The global `dict`: makes dicts and shows nothing of the class."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args, **kwargs)


class _ChatNamespace(Namespace):
    """The global `namespace`, without names that begin with an underscore; it may hold others, or itself."""

    _environment: ChatEnvironment
    """Of the class, and with a name that no template may ask for."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        values = dict(*args[1:], **kwargs)
        for name in values:
            _check_name(name)
        Namespace.__init__(args[0], values)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        super().__setitem__(name, value)

    def __repr__(self) -> str:
        type(self)._environment.state.measure(self)
        return f"<Namespace {self._Namespace__attrs!r}>"


def _check_name(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"a namespace of a chat template has no attribute {name!r}: it begins with an underscore")
