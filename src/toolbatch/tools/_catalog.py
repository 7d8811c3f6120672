"""The tools that a batch may run, by name: registered, removed, and shown in parts (T2)."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MethodType
from typing import Any, final

from toolbatch.core import InvalidInputError, InvalidTypeError, preview

from ._lanes import Lane, declare
from ._near import near_names
from ._tool import AnyTool, Tool, tool

__all__ = ["Registration", "ToolCatalog", "ToolView", "Tools"]


class Tools(Mapping[str, AnyTool]):
    """Tools by name, to be read: what a catalog and its views have in common. Both can be a batch's `tools`."""

    __slots__ = ()

    @abstractmethod
    def _current(self) -> Mapping[str, AnyTool]:
        """Return what is there now, by name, in the order of registration."""

    def __getitem__(self, name: str) -> AnyTool:
        return self._current()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._current()))  # a copy: a tool may be registered while someone reads

    def __len__(self) -> int:
        return len(self._current())

    def __contains__(self, name: object) -> bool:
        return name in self._current()

    def near(self, name: str) -> list[str]:
        """Return up to three names of tools that look like `name`, the most alike first."""
        return near_names(name, self)

    def schemas(self, lane: Lane) -> list[Any]:
        """Return what a request's `tools` should hold, in the order of registration.

        It has each tool's name, description and schema, strict where the tool and the lane are, and nothing else. They are
        dicts, typed as `Any` so that each SDK's `tools` takes them, and copies: changing them changes no tool.

        Raises:
            InvalidInputError: There is no such lane, or it can't take a tool's name or schema.
        """
        return declare(list(self._current().values()), lane)

    def view(self, *, allow: Iterable[str] | None = None, deny: Iterable[str] | None = None) -> "ToolView":
        """Return a live view of a part of the tools: what is removed here is gone there.

        Args:
            allow: The names that it may show. A tool registered later under another name isn't among them.
            deny: Names that it does not show. Tools registered later are shown.

        Raises:
            InvalidInputError: A name is of no tool here: a misspelt filter would let through what it should stop.
            InvalidTypeError: A filter is a lone string, or holds something else than names.
        """
        return ToolView(self, _names(self, allow, "allow"), _names(self, deny, "deny"))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {', '.join(self) or 'no tools'}>"


@final
class ToolCatalog(Tools):
    """Tools that can be registered and removed at any time. A call that was admitted keeps the tool it had (O7).

    Args:
        tools: Tools, or functions to make tools of, as in `register_all`.

    Raises:
        InvalidInputError: Two have the same name.
        InvalidTypeError: One can't be a tool.
    """

    __slots__ = ("_entries", "_tools")

    def __init__(self, tools: Iterable[AnyTool | Callable[..., Any]] = ()) -> None:
        self._tools: dict[str, AnyTool] = {}
        self._entries: dict[str, object] = {}  # whose registration each name is
        self.register_all(tools)

    def _current(self) -> Mapping[str, AnyTool]:
        return self._tools

    def __getitem__(self, name: str) -> AnyTool:
        return self._tools[name]

    def get(
        self, name: str, default: Any = None, /
    ) -> Any:  # every call comes here, and Mapping's takes four times as long
        return self._tools.get(name, default)

    def register(self, item: AnyTool | Callable[..., Any]) -> "Registration":
        """Add a tool, or a function as a tool, and return what removes it again.

        Raises:
            InvalidInputError: The name is taken. The catalog is as it was.
            InvalidTypeError: It can't be a tool: no function, a method of no instance, an annotation that can't be read.
        """
        return self.register_all([item])

    def register_all(self, items: Iterable[AnyTool | Callable[..., Any]]) -> "Registration":
        """Add several tools or none: the first that can't be added leaves the catalog as it was.

        Raises:
            InvalidInputError: A name is taken, or occurs twice.
            InvalidTypeError: One can't be a tool.
        """
        ready = [_ready(item) for item in items]  # all of the callers' code runs before anything is looked at
        new: dict[str, AnyTool] = {}
        for item in ready:
            if item.name in self._tools or item.name in new:
                raise InvalidInputError(
                    f"there is a tool named {item.name!r} already; nothing was registered. "
                    "Remove that one first, or use replace(name=...)"
                )
            new[item.name] = item
        registration = Registration(self, tuple(new))
        self._tools.update(new)
        self._entries.update(dict.fromkeys(new, registration))
        return registration

    def remove(self, registration: "Registration") -> bool:
        """Remove what `registration` added, and say whether any of it was still there. Calling it does the same."""
        own = [name for name in registration.names if self._entries.get(name) is registration]
        for name in own:
            del self._tools[name], self._entries[name]
        return bool(own)


@final
class ToolView(Tools):
    """A live part of a catalog, or of another view. Made by `view`."""

    __slots__ = ("_allow", "_deny", "_source")

    def __init__(self, source: Tools, allow: frozenset[str] | None, deny: frozenset[str] | None) -> None:
        self._source = source
        self._allow = allow
        self._deny = deny or frozenset()

    def _shows(self, name: object) -> bool:
        return name not in self._deny and (self._allow is None or name in self._allow)

    def _current(self) -> Mapping[str, AnyTool]:
        return {name: item for name, item in self._source._current().items() if self._shows(name)}

    def __getitem__(self, name: str) -> AnyTool:  # without copying the source, since every call comes here
        if not self._shows(name):
            raise KeyError(name)
        return self._source[name]

    def __contains__(self, name: object) -> bool:
        return self._shows(name) and name in self._source


@final
class Registration:
    """What a registration added. Called, it removes that and nothing else: not a later tool of the same name.

    Attributes:
        names: The tools' names.
    """

    __slots__ = ("_catalog", "names")

    def __init__(self, catalog: ToolCatalog, names: tuple[str, ...]) -> None:
        self._catalog = catalog
        self.names = names

    def __call__(self) -> bool:
        """Remove the tools, and return whether any was still there. A second time does nothing."""
        return self._catalog.remove(self)

    def __enter__(self) -> "Registration":
        return self

    def __exit__(self, *_: object) -> None:
        self()

    def __repr__(self) -> str:
        return f"<Registration of {', '.join(self.names) or 'nothing'}>"


def _ready(item: object) -> AnyTool:
    """Return a tool that can be run, with a schema that can be shown."""
    if isinstance(item, MethodType) and isinstance(item.__func__, Tool):
        # `@classmethod` above `@tool`: since Python 3.13 it no longer asks what it wraps to bind itself.
        item = item.__func__.__get__(item.__self__, type(item.__self__))
    made = item if isinstance(item, Tool) else tool(_callable(item))
    made.require_bound()
    made.reader.schema()
    return made


def _callable(item: object) -> Callable[..., Any]:
    if not callable(item):
        raise InvalidTypeError(f"a catalog holds tools and functions, not {preview(item)}")
    return item


def _names(tools: Tools, names: Iterable[str] | None, what: str) -> frozenset[str] | None:
    if names is None:
        return None
    if isinstance(names, str):
        raise InvalidTypeError(f"{what} must be a collection of names, not the one name {names!r}")
    given = list(names)
    for name in given:
        if not isinstance(name, str):
            raise InvalidTypeError(f"{what} must hold names of tools, not {preview(name)}")
        if name not in tools:
            near = tools.near(name)
            hint = f"did you mean {near[0]!r}?" if near else f"they are {', '.join(tools) or 'none'}"
            raise InvalidInputError(f"{what} names {preview(name)}, which is no tool here; {hint}")
    return frozenset(given)
