"""A page as a tree of elements, so that tests look at structure and not at strings."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset({"br", "col", "img", "input", "link", "meta", "path"})


@dataclass(eq=False)
class Element:
    """One element; `children` holds elements and strings."""

    tag: str
    attributes: dict[str, str | None]
    children: list["Element | str"] = field(default_factory=list)

    def walk(self) -> Iterator["Element"]:
        """This element and all below it, in document order."""
        yield self
        for child in self.children:
            if isinstance(child, Element):
                yield from child.walk()

    def all(self, tag: str | None = None, **attributes: str) -> list["Element"]:
        """Elements of this tag (if given) with these attributes; `data_x` stands for `data-x`."""
        wanted = {name.strip("_").replace("_", "-"): value for name, value in attributes.items()}
        return [
            element
            for element in self.walk()
            if tag in (None, element.tag)
            and all(element.attributes.get(name) == value for name, value in wanted.items())
        ]

    def one(self, tag: str | None = None, **attributes: str) -> "Element":
        """The only such element."""
        found = self.all(tag, **attributes)
        assert len(found) == 1, f"{len(found)} elements {tag} {attributes}"
        return found[0]

    @property
    def text(self) -> str:
        """Its text, with white space as a reader sees it."""
        return " ".join(self._raw().split())

    def _raw(self) -> str:
        return "".join(
            child if isinstance(child, str) else f" {child._raw()} " for child in self.children
        )


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("document", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs))
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def parse_page(text: str) -> Element:
    """The tree of a page; AssertionError if an element is not closed in its place."""
    builder = _Builder()
    builder.feed(text)
    builder.close()
    assert builder.open == [builder.root], f"never closed: {builder.open[-1].tag}"
    return builder.root
