"""OpenTelemetry: one span a call, one above them a batch, and metrics, by the conventions for generative AI.

The conventions are those of `open-telemetry/semantic-conventions-genai`, version 0.1.0 (status: development). What is ours is named
`toolbatch.*`. Nothing of OpenTelemetry is imported before an `OpenTelemetry` is made.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from toolbatch.core import InvalidInputError, InvalidTypeError, preview
from toolbatch.ports import BatchOpened, BatchWatcher, trace_carrier

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

__all__ = ["OpenTelemetry", "continued_trace"]

_MISSING: Final = "OpenTelemetry() needs the package opentelemetry-api: pip install 'toolbatch[otel]'"


class OpenTelemetry:
    """Traces and measures batches. Give it to a session or a batch as one of its `observers`; one serves any number of them.

    Each call has one span, `execute_tool {gen_ai.tool.name}`, from the moment the host hands it over until it has its outcome; what the
    tool does runs inside of it, in the loop and in threads (B11), and in other processes through `continued_trace`. Above it is
    the batch's span, `tool_batch`, whose parent is the span that was current where the batch was entered: inside a tool, that
    tool's. Code that ends after its outcome gets a span of its own, `late_end {gen_ai.tool.name}`, below the call's and linked
    to it.

    A failed or timed out call has status ERROR and `error.type`: the code that the model reads, or the exception's class. A call that was cancelled, denied
    or never started is no error of the tool's; its `toolbatch.status` and `toolbatch.code` say what it is.

    Args:
        tracer_provider: Where spans go; the global one where `None`.
        meter_provider: Where metrics go; the global one where `None`.
        content: Whether arguments, results, messages, progress reports, reasons and exceptions are recorded. They may hold secrets (FIELD 115).
        max_content_bytes: Longer content is cut, at least 1.

    Raises:
        ImportError: OpenTelemetry is not installed.
        InvalidInputError: `max_content_bytes` is less than 1.
        InvalidTypeError: `max_content_bytes` is no int.
    """

    def __init__(
        self,
        *,
        tracer_provider: "TracerProvider | None" = None,
        meter_provider: "MeterProvider | None" = None,
        content: bool = False,
        max_content_bytes: int = 8192,
    ) -> None:
        if type(max_content_bytes) is not int:
            raise InvalidTypeError(f"max_content_bytes must be a positive int, not {preview(max_content_bytes)}")
        if max_content_bytes < 1:
            raise InvalidInputError(f"max_content_bytes must be at least 1, not {max_content_bytes}")
        try:
            from ._otel_metrics import Meters
            from ._otel_spans import BatchSpans, tracer
        except ImportError as error:
            raise ImportError(_MISSING) from error
        self._watch = BatchSpans
        self._tracer = tracer(tracer_provider)
        self._meters = Meters(meter_provider)
        self._content_bytes = max_content_bytes if content else 0

    def __call__(self, opened: BatchOpened, /) -> BatchWatcher | None:
        """Begin a batch's span, below the span that is current here; none for a turn in which the model called nothing."""
        return self._watch(opened, self._tracer, self._meters, self._content_bytes) if opened.calls else None


@contextmanager
def continued_trace() -> Iterator[None]:
    """Make the call's span current in a tool that runs in another process: spans made inside have it as their parent.

    It does nothing where the call is not traced. That process needs an OpenTelemetry SDK of its own.

    Raises:
        ImportError: The call is traced, and OpenTelemetry is not installed here.
    """
    headers = trace_carrier.get()
    if not headers:
        yield
        return
    try:
        from opentelemetry import context, propagate
    except ImportError as error:
        raise ImportError(_MISSING) from error
    token = context.attach(propagate.extract(headers))
    try:
        yield
    finally:
        context.detach(token)
