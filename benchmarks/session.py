"""What a session adds to its batches."""

import asyncio

from toolbatch import ToolSession
from toolbatch.providers import openai_chat

from ._measure import LOOPS, Effort, compare, looped
from ._report import COLUMNS, Row, Table, cells
from ._sides import LIMITS, TIMEOUT, announce, no_op, with_toolbatch

__all__ = ["run"]


def run(effort: Effort) -> Table:
    """Measure batches of three sizes within one session, against batches of their own."""
    sizes = (1, 8) if effort.quick else (1, 8, 64)
    return Table(
        "A batch in a session",
        "Ours: one `ToolSession`, and batch after batch in it. Theirs: the same batches, each a `ToolBatch` alone. On asyncio;\n"
        "times are of a batch.",
        "none; this informs",
        ("calls", *COLUMNS),
        [_row(size, effort) for size in sizes],
    )


def _row(size: int, effort: Effort) -> Row:
    calls = announce(size)

    async def in_session(times: int) -> None:
        async with ToolSession(call_timeout=TIMEOUT, limits=LIMITS) as session:
            for _ in range(times):
                async with session.batch(calls) as batch:
                    for call in batch.calls:
                        batch.start(call.id, no_op, **call.arguments)
                    snapshot = await batch.snapshot()
                openai_chat.results(snapshot)

    async def alone(times: int) -> None:
        for _ in range(times):
            await with_toolbatch(calls)

    with asyncio.Runner(loop_factory=LOOPS["asyncio"]) as runner:
        comparison = compare(looped(runner, in_session), looped(runner, alone), effort)
    return Row((f"{size:,}", *cells(comparison)), comparison.ratio, None)
