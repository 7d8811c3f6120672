"""A journal's records as rows, and back again: one JSON text a record, whatever keeps it."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from toolbatch.core import (
    CallProblem,
    Cancelled,
    Closed,
    CloseReason,
    Failed,
    InvalidInputError,
    RichSucceeded,
    Settlement,
    Succeeded,
    ToolCall,
    encode,
    from_plain,
    preview,
)
from toolbatch.ports import (
    AnnouncedRecord,
    ClosedRecord,
    JournaledBatch,
    JournalRecord,
    OperationStoreError,
    ResumedRecord,
    SettledRecord,
    StartedRecord,
)

__all__ = ["COLUMNS", "JournalRow", "batch_of", "rows_of", "settlement_of"]

COLUMNS: Final = "record.batch, kind, at, CASE kind WHEN 'announced' THEN run ELSE '' END, body"
"""A row's fields, of the tables `record` and `batch`, in every database."""


class JournalRow(NamedTuple):
    """One record.

    Attributes:
        batch: The batch's name.
        kind: `announced`, `started`, `settled`, `closed` or `resumed`.
        at: When, in seconds since the epoch.
        run: The run's name, of an announcement; else "".
        body: The rest, as JSON.
    """

    batch: str
    kind: str
    at: float
    run: str
    body: bytes


def rows_of(records: Sequence[JournalRecord], is_known: Callable[[str], bool]) -> list[JournalRow]:
    """Return records as rows.

    Args:
        records: In their order.
        is_known: Whether the journal has a batch of that name.

    Raises:
        EncodingError: An announced call has no JSON form.
        InvalidInputError: A batch is announced a second time, or was not; or a record is none.
    """
    rows = []
    new: set[str] = set()
    for record in records:
        row = _row(record)
        is_there = row.batch in new or is_known(row.batch)
        if row.kind == "announced":
            new.add(row.batch)
        if is_there == (row.kind == "announced"):
            why = "is in the journal already" if is_there else "is not in this journal; go on with it in its own"
            raise InvalidInputError(f"batch {row.batch!r} {why}. Nothing was written")
        rows.append(row)
    return rows


def _row(record: JournalRecord) -> JournalRow:
    match record:
        case AnnouncedRecord():
            calls = [_plain_call(call) for call in record.calls]
            body: dict[str, Any] = {"generation": record.generation, "calls": calls}
            return JournalRow(record.batch_id, "announced", record.at, record.run_id, _bytes(body))
        case StartedRecord():
            body = {"call_id": record.call_id, "operation_id": record.operation_id}
            return JournalRow(record.batch_id, "started", record.at, "", _bytes(body))
        case SettledRecord():
            body = {"call_id": record.call_id, "settlement": record.settlement.to_dict()}
            return JournalRow(record.batch_id, "settled", record.at, "", _bytes(body))
        case ClosedRecord():
            return JournalRow(record.batch_id, "closed", record.at, "", _bytes(record.reason.to_dict()))
        case ResumedRecord():
            return JournalRow(record.batch_id, "resumed", record.at, "", _bytes({"generation": record.generation}))
    raise InvalidInputError(f"{preview(record)} is no record of a journal")


def batch_of(rows: Sequence[JournalRow]) -> JournaledBatch | None:
    """Return the batch that a journal's rows of one name make; `None` for no rows.

    Raises:
        OperationStoreError: They were not written by this version of toolbatch, or are damaged.
    """
    try:
        return JournaledBatch([_record(row) for row in rows]) if rows else None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise OperationStoreError(
            f"the journal's records of batch {rows[0].batch!r} can't be read ({error!r}): they are damaged, or of a newer toolbatch"
        ) from error


def _record(row: JournalRow) -> JournalRecord:
    body: dict[str, Any] = json.loads(row.body.decode("utf-8", "surrogatepass"))
    match row.kind:
        case "announced":
            calls = tuple(map(_call, body["calls"]))
            return AnnouncedRecord(
                batch_id=row.batch, at=row.at, run_id=row.run, generation=body["generation"], calls=calls
            )
        case "started":
            call_id, operation_id = body["call_id"], body["operation_id"]
            return StartedRecord(batch_id=row.batch, at=row.at, call_id=call_id, operation_id=operation_id)
        case "settled":
            settlement = settlement_of(body["settlement"])
            return SettledRecord(batch_id=row.batch, at=row.at, call_id=body["call_id"], settlement=settlement)
        case "closed":
            return ClosedRecord(batch_id=row.batch, at=row.at, reason=CloseReason(**body))
        case "resumed":
            return ResumedRecord(batch_id=row.batch, at=row.at, generation=body["generation"])
        case _:
            raise ValueError(f"there is no record of the kind {row.kind!r}")


def _plain_call(call: ToolCall) -> dict[str, Any]:
    plain: dict[str, Any] = {"id": call.id, "name": call.name}
    plain["arguments"] = call.arguments if call.raw_arguments is None else call.raw_arguments
    if call.problem is not None:
        plain["problem"] = {"code": call.problem.code, "message": call.problem.message}
    if call.wire_id is not None:
        plain["wire_id"] = call.wire_id
    if call.kind != "function":
        plain["kind"] = call.kind
    if call.echo:
        plain["echo"] = call.echo
    return plain


def _call(plain: Mapping[str, Any]) -> ToolCall:
    problem = plain.get("problem")
    return ToolCall(
        plain["id"],
        plain["name"],
        plain["arguments"],
        problem=None if problem is None else CallProblem(problem["code"], problem["message"]),
        wire_id=plain.get("wire_id"),
        kind=plain.get("kind", "function"),
        echo=plain.get("echo"),
    )


def settlement_of(data: Mapping[str, Any]) -> Settlement:
    """Return the outcome that `to_dict()` made this data of.

    Raises:
        KeyError: It did not make it.
        TypeError: Likewise.
        ValueError: Likewise.
    """
    if data["provenance"] == "synthetic":
        effects = data["side_effect_state"]
        return Closed(data["status"], data["code"], data["message"], effects, data.get("partial"))
    if data["status"] == "success":
        if "parts" not in data:
            return Succeeded(data["content"])
        return RichSucceeded(tuple(map(from_plain, data["parts"])), data["content"])
    kind = Failed if data["status"] == "error" else Cancelled
    return kind(data["code"], data["message"])


def _bytes(body: Mapping[str, Any]) -> bytes:
    return encode(body).encode("utf-8", "surrogatepass")  # what a model sent may hold lone surrogates
