"""Operation ids: one text of tenant, run and call that can't be mistaken for another's."""

from toolbatch.core import InvalidInputError, preview, require_text
from toolbatch.ports import MAX_OPERATION_ID_BYTES

__all__ = ["operation_id"]

_ESCAPED = str.maketrans({"%": "%25", "/": "%2F", **{chr(code): f"%{code:02X}" for code in (*range(32), 127)}})


def operation_id(*, tenant: str, run: str, call: str) -> str:
    """Return the id of an operation in the scope of its tenant and run: `tenant/run/call` (D5).

    Slashes, percent signs and control characters in the parts are percent-encoded, so that no two scopes can make the same
    id. All ids of a run begin with `operation_id(tenant=…, run=…, call="")`, which `unresolved` takes as its prefix.

    Args:
        tenant: The host's name of the tenant, as it has authenticated it.
        run: The host's name of the run, the same after a resume. Names that grow with time make the fastest ids.
        call: The host's or the provider's id of the call within the run; empty for the run's prefix.

    Raises:
        InvalidTypeError: A part is not a `str`.
        InvalidInputError: `tenant` or `run` is blank, a part has a lone surrogate, or the id has more than 512 bytes.
    """
    parts = (
        require_text(tenant, "tenant", MAX_OPERATION_ID_BYTES),
        require_text(run, "run", MAX_OPERATION_ID_BYTES),
        call if call == "" else require_text(call, "call", MAX_OPERATION_ID_BYTES),
    )
    made = "/".join(part.translate(_ESCAPED) for part in parts)
    if len(made.encode()) > MAX_OPERATION_ID_BYTES:
        raise InvalidInputError(
            f"the operation id {preview(made)} has {len(made.encode())} bytes, more than {MAX_OPERATION_ID_BYTES}; "
            "use a shorter tenant, run or call"
        )
    return made
