"""Documents for people: which renderer wrote them, and how a replay verifies them.

Every JSON document that is published with a rendering of itself (Markdown, HTML) names, in its field
`renderings`, the version of each renderer and the hash of what it wrote. A replay renders again only what
the current version wrote; what an older one wrote is held by its hash in the document and in the
checkpoint that published both. So a template can be improved without breaking what was published before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from viano_assets.canonical import sha256_hex
from viano_assets.errors import ContractError, NewerFormatError
from viano_assets.package.model import Head
from viano_assets.phases.common import declared_by, place
from viano_assets.phases.protocols import Store

FIELD = "renderings"
"""The field of a published document that names its renderings."""


class RenderedBinding(BaseModel):
    """One rendering of a document: the version of the renderer that wrote it, and its hash."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    version: Annotated[int, Field(ge=0)]
    sha256: str


Bindings = dict[str, RenderedBinding]
"""File name to binding."""

_BINDINGS: TypeAdapter[Bindings] = TypeAdapter(Bindings)


class Renderer(NamedTuple):
    """How one document is rendered now. Any change of the bytes needs the next version number.

    `name` is the file name beside the document; `render` is called only for the current version, so that
    it never meets a document whose rendering is older than itself.
    """

    name: str
    version: int
    render: Callable[[], bytes]


class Rendered(NamedTuple):
    """Freshly rendered documents by file name, and the bindings their document has to carry."""

    contents: dict[str, bytes]
    bindings: Bindings


def rendered(renderers: Sequence[Renderer]) -> Rendered:
    """Render a document that is about to be published."""
    contents = {renderer.name: renderer.render() for renderer in renderers}
    bindings = {
        renderer.name: RenderedBinding(version=renderer.version, sha256=sha256_hex(contents[renderer.name]))
        for renderer in renderers
    }
    return Rendered(contents, bindings)


def as_json(bindings: Mapping[str, RenderedBinding]) -> dict[str, dict[str, int | str]]:
    """Return the JSON form of the field."""
    return {name: binding.model_dump(mode="json") for name, binding in sorted(bindings.items())}


def verified(
    store: Store,
    head: Head,
    document: str,
    stored: object,
    renderers: Sequence[Renderer],
    broken: Callable[[str], ContractError],
) -> Bindings:
    """Verify the renderings of a published document and return the bindings it has to carry.

    Args:
        store: where the bytes are read.
        head: the package.
        document: path of the document; its renderings lie beside it and were published with it.
        stored: the field `renderings` as the document has it.
        renderers: every renderer of the document as it is now.
        broken: makes the phase's error of a document that cannot be trusted.

    Raises:
        NewerFormatError: `newer_format`, a newer release rendered it.
        ContractError: what `broken` makes.
    """
    try:
        bindings = _BINDINGS.validate_python(stored)
    except ValidationError as error:
        raise broken("it does not name what rendered it") from error
    if bindings.keys() != {renderer.name for renderer in renderers}:
        raise broken("it does not name each of its renderings")
    for renderer in renderers:
        _check(store, head, document, bindings[renderer.name], renderer, broken)
    return bindings


def _check(
    store: Store,
    head: Head,
    document: str,
    binding: RenderedBinding,
    renderer: Renderer,
    broken: Callable[[str], ContractError],
) -> None:
    path = f"{document.rpartition('/')[0]}/{renderer.name}"
    publishing = declared_by(head, document)
    if len(publishing) != 1 or publishing != declared_by(head, path):
        raise broken(f"{renderer.name} was not published with it")
    if binding.version > renderer.version:
        raise NewerFormatError(
            "newer_format",
            f"rendered by version {binding.version}, this release knows {renderer.version}",
            where=place(head, path),
            hint="use the release that wrote it, or a newer one",
        )
    if path not in head.files or publishing[0].declares[path] != binding.sha256:
        raise broken(f"{renderer.name} is not the one it names")
    data = store.read(head, path)
    if sha256_hex(data) != binding.sha256:
        raise broken(f"{renderer.name} is not the one it names")
    if binding.version == renderer.version and renderer.render() != data:
        raise broken(f"{renderer.name} is not what the document renders to")
