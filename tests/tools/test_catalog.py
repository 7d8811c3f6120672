"""T2: tools come and go by name, views stay live, and nothing is half done."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from toolbatch import ToolBatch
from toolbatch.core import InvalidInputError, InvalidTypeError
from toolbatch.tools import AnyTool, ToolCatalog, near_names, tool, unknown_tool_message


def nothing() -> None:
    """Do nothing."""


def named(*names: str) -> list[AnyTool]:
    """Tools of these names."""
    return [tool(nothing, name=name) for name in names]


def test_a_catalog_is_read_like_a_mapping() -> None:
    """T2: by name, in the order of registration, so that it can be a batch's `tools`."""
    catalog = ToolCatalog(named("b", "a"))
    assert isinstance(catalog, Mapping)
    assert (list(catalog), len(catalog), "a" in catalog, "c" in catalog) == (["b", "a"], 2, True, False)
    assert catalog["a"].name == "a"
    assert catalog.get("c") is None
    assert [(name, item.name) for name, item in catalog.items()] == [("b", "b"), ("a", "a")]
    with pytest.raises(KeyError):
        catalog["c"]
    assert repr(catalog) == "<ToolCatalog of b, a>"
    ToolBatch([], tools=catalog)


def test_a_name_is_taken_once() -> None:
    """T2: a duplicate raises, and the first tool stays."""
    first, second = named("a", "a")
    catalog = ToolCatalog([first])
    with pytest.raises(InvalidInputError, match="'a' already"):
        catalog.register(second)
    assert catalog["a"] is first


def hostile(catalog: ToolCatalog) -> Iterator[AnyTool]:
    """Yield tools, and register another between them."""
    yield named("x")[0]
    catalog.register(named("x")[0])


@pytest.mark.parametrize("bad", [["b", "b"], ["b", "a"], ["b", 3], ["b", None]])
def test_several_are_registered_or_none(bad: list[Any]) -> None:
    """T2: the first that can't be added leaves the catalog as it was."""
    catalog = ToolCatalog(named("a"))
    items = [named(name)[0] if isinstance(name, str) else name for name in bad]
    with pytest.raises((InvalidInputError, InvalidTypeError)):
        catalog.register_all(items)
    assert list(catalog) == ["a"]


def test_what_registers_while_it_is_registered_wins() -> None:
    """T2: callers' code runs before anything is looked at, so it can't be overwritten unseen."""
    catalog = ToolCatalog()
    with pytest.raises(InvalidInputError, match="'x' already"):
        catalog.register_all(hostile(catalog))
    assert list(catalog) == ["x"]


def test_a_disposer_removes_only_its_own() -> None:
    """T2: not a later tool of the same name, and not twice."""
    catalog = ToolCatalog(named("keep"))
    first = catalog.register_all(named("a", "b"))
    assert first.names == ("a", "b")
    assert (first(), list(catalog), first()) == (True, ["keep"], False)
    same = named("a")[0]
    second = catalog.register(same)
    assert second()
    with catalog.register(same):
        assert not second()
        assert not first()
        assert "a" in catalog
    assert list(catalog) == ["keep"]


def test_views_are_live() -> None:
    """T2: `deny` admits tools that come later, `allow` does not; what goes is gone in both."""
    catalog = ToolCatalog(named("a", "b"))
    remove = catalog.register(named("c")[0])
    allowed, denied = catalog.view(allow=["a", "c"]), catalog.view(deny=["a"])
    assert (list(allowed), list(denied)) == (["a", "c"], ["b", "c"])
    catalog.register(named("d")[0])
    remove()
    assert (list(allowed), list(denied), len(allowed), len(denied)) == (["a"], ["b", "d"], 1, 2)
    assert ("d" in allowed, "d" in denied, "a" in denied) == (False, True, False)
    assert allowed.get("b") is None
    assert denied["d"].name == "d"
    with pytest.raises(KeyError):
        denied["a"]
    both = catalog.view(allow=["a", "b"], deny=["b"])
    assert list(both) == ["a"]
    assert list(denied.view(allow=["d"])) == ["d"]
    assert list(catalog.view()) == list(catalog)
    assert list(catalog.view(allow=[])) == []


def test_an_unknown_name_in_a_filter_raises() -> None:
    """T2: a misspelt `deny` would let through what it should stop; the near name is said."""
    catalog = ToolCatalog(named("delete_file", "read"))
    with pytest.raises(InvalidInputError, match=r"deny names 'delete_fil'.*did you mean 'delete_file'"):
        catalog.view(deny=["delete_fil"])
    with pytest.raises(InvalidInputError, match=r"allow names 'zzz'.*they are delete_file, read"):
        catalog.view(allow=["zzz"])
    for wrong in ("read", [3]):
        bad: Any = wrong
        with pytest.raises(InvalidTypeError):
            catalog.view(allow=bad)
    with pytest.raises(InvalidInputError):  # through a view, only what it shows is known
        catalog.view(deny=["read"]).view(allow=["read"])


def test_reading_while_registering_is_safe() -> None:
    """An iteration sees what was there when it began."""
    catalog = ToolCatalog(named("a", "b"))
    for name in catalog:
        catalog.register(named(f"{name}_again")[0])
    assert len(catalog) == 4


def test_near_names_are_said() -> None:
    """T5: case is no difference, and the number is bounded."""
    names = ["read_file", "read_files", "write_file", "send_mail", "Read_Dir"]
    assert near_names("read_fil", names)[0] == "read_file"
    assert near_names("READ_DIR", names)[0] == "Read_Dir"
    assert ToolCatalog(named(*names)).near("send_mial") == ["send_mail"]
    assert "Did you mean read_file" in unknown_tool_message("read_fle", names)
    assert "The tools are: Read_Dir" in unknown_tool_message("zzz", names)
    assert "and 80 more" in unknown_tool_message("zzz", [f"tool_{n}" for n in range(100)])
    assert "no tools now" in unknown_tool_message("zzz", [])


def test_a_hostile_name_gives_a_bounded_message() -> None:
    """T5: a name of any length and kind is shown shortly, and in text that can be sent."""
    message = unknown_tool_message("x\ud800" * 100_000, ["a"])
    assert len(message) < 1000
    message.encode()
