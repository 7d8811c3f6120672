"""The public names are a list that is written down here: none comes or goes unnoticed."""

import ast
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import toolbatch
from toolbatch.core import ToolbatchError, _errors

SOURCE = Path(__file__).resolve().parent.parent / "src" / "toolbatch"

# To make a name public, write it here and in its package's `__all__`. To take one away is a breaking change.
PUBLIC = {
    "toolbatch": """
        AuditChannel BatchClosedError BatchStateError CallContext current_call Data Document EncodingError
        ExecutionOutcome Image InvalidInputError InvalidTypeError Json JsonLinesSink LateNote Limits LoggingSink
        Part ProviderMismatchError ResourceLink Snapshot StaleResult Text Tool tool ToolBatch ToolbatchError
        ToolCall ToolCatalog ToolCounters ToolError ToolSession Url WrongThreadError
    """,
    "toolbatch.core": """
        Accepted as_parts BatchClosedError BatchHandle BatchStateError Begun byte_length CallProblem
        CallSnapshot CallState Cancelled Closed CloseReason CloseStatus cut Data described Diagnostic Document
        encode Encoder EncodingError Failed from_plain Image Input InvalidInputError InvalidTypeError Json LATE
        Limits Part preview ProviderMismatchError Rejected RejectionReason require_closed require_text
        ResourceLink RichSucceeded Settlement SideEffectState Snapshot sound State Succeeded TABLE Text text_of
        to_plain ToolbatchError ToolCall ToolCallClosure ToolError Url WrongThreadError
    """,
    "toolbatch.ports": """
        Abort AnnouncedRecord ApprovalBroker ApprovalDecision ApprovalRequest ApprovalRequested Approve
        AuditSink BackendError BackendNotStartedError BackendResultError BackendUnknownError BatchClosed
        BatchEvent BatchObserver BatchOpened BatchWatcher CallAdmitted CallFacts CallNote CallProgress
        CallSettled CallStarted CancelEvent Cancellation canonical_json Claim Claimed ClaimedBeforeError
        ClaimLostError ClaimToken ClosedRecord Completed Completion Deny Done Enforcement EventObserver
        ExecutionBackend ExecutionOutcome ExecutionStatus Invocation Journal JournaledBatch JournalRecord
        LATE_HEAD late_line LateNote MAX_OPERATION_ID_BYTES MAX_OPERATION_RESULT_BYTES NotApplied NotDone
        NoteKind NOTES NotSendableError Operation OperationConflictError OperationRecord OperationResolver
        OperationStore OperationStoreClosedError OperationStoreError OutcomeObserver remote_call RemoteToolError
        REPLAY_POLICIES ReplayPolicy Resolution ResultNotSendableError ResultTooLargeError ResumedRecord
        RunningCall SAVED_MARK SAVED_VERSION SettledRecord SpillRecord SpillSlice SpillStore StaleResult
        StartedRecord StillUnknown trace_carrier Unknown was_cut_off WorkerKilledError
    """,
    "toolbatch.providers": """
        anthropic bedrock cohere gemini gemini_interactions mcp mistral ollama openai_chat openai_responses
    """,
    "toolbatch.observe": """
        BatchRecord CallRecord continued_trace JsonLinesSink LateRecord live LiveView log_event LOG_EVENTS
        LogEvent LogEventName LoggingSink OpenTelemetry read_run RunLog RunRecord ToolCounters Watchable
    """,
    "toolbatch.batch": """
        AuditChannel BatchSettings CallContext current_call DurableOperationError DurableOperations ErrorDetail
        EventStream let_go_count MAX_LET_GO MAX_THREADS OnError ToolBatch Tools ToolSession
    """,
    "toolbatch.cli": """
        main
    """,
    "toolbatch.transcript": """
        Action ArgumentsRepair Cause check detect Form FORMS INTERRUPTED_TEXT LaneName LANES NOT_STARTED_TEXT
        Repair repair repair_arguments RepairedArguments RepairedTranscript SECOND_RESULT_TEXT Stamp stamp
        STAMP_KEY stamps_of unstamped Violation
    """,
    "toolbatch.tools": """
        Accept Allow AnyTool Ask authorize Block CallAllowance Decision dispatch finalize FixedApprovals Hooks
        InteractiveApprovals Interceptor Judge Lane NamedOptions near_names NOT_EXECUTED prepare Prepared
        Refused Registration render_result Rendered Replace Tool tool ToolCatalog ToolFailure ToolOptions
        ToolResult Tools ToolSuccess ToolTimeoutError ToolView unchecked unknown_tool_message Verdict
    """,
    "toolbatch.testing": """
        BACKEND_TOOLS BACKEND_VARIABLE check_anthropic check_backend check_bedrock check_chat check_gemini
        check_journal check_responses check_spill_store check_store FakeProvider RecordedRequest Rejection Reply
        Rule Script ScriptedCall
    """,
    "toolbatch.output": """
        estimate_tokens make_reader MemorySpillStore OutputBudget OverflowPolicy Reader READER_NAME
        SqliteSpillStore TokenCount truncate_middle Truncation
    """,
    "toolbatch.operations": """
        may_share_wal MemoryJournal MemoryOperationStore operation_id owner_state OwnerState PostgresJournal
        PostgresOperationStore resolve settlement_of SqliteJournal SqliteOperationStore this_owner
    """,
    "toolbatch.integrations": """

    """,
    "toolbatch.backends": """
        LoopBackend ProcessBackend RemoteCall temporal_worker TemporalBackend ThreadBackend WorkerTool
    """,
}

PROMISED = "ToolBatch ToolSession ToolCall Snapshot Limits StaleResult ExecutionOutcome ToolError BatchClosedError tool Tool ToolCatalog"
"""Names that checks outside this repository import from the root (REQUIREMENTS, Public names)."""

PROMISED_BY_THE_CORE = "ToolCallClosure Limits ToolCall BatchHandle Begun Accepted Rejected Snapshot"

HEAVY = {
    "pydantic",
    "pydantic_core",
    "openai",
    "anthropic",
    "starlette",
    "uvicorn",
    "uvloop",
    "httpx",
    "rich",
    "fastapi",
    "pytest",
    "hypothesis",
    "opentelemetry",
    "temporalio",
    "asyncpg",
    "multiprocessing",
    "sqlite3",
}


def module_names() -> list[str]:
    """Every module of the package, by its dotted name."""
    files = [file.relative_to(SOURCE.parent).with_suffix("") for file in SOURCE.rglob("*.py")]
    return sorted(".".join(file.parts).removesuffix(".__init__") for file in files)


def module(name: str) -> ModuleType:
    """The module of that name, imported."""
    found = pkgutil.resolve_name(name)
    assert isinstance(found, ModuleType)
    return found


@pytest.mark.parametrize("package", PUBLIC)
def test_the_public_names_are_these(package: str) -> None:
    """`__all__` is the list written down above, sorted as ruff sorts it, with no name twice."""
    names = module(package).__all__
    assert sorted(names) == sorted(PUBLIC[package].split())
    assert len(set(names)) == len(names)


def test_every_package_has_its_list() -> None:
    """A new folder of the source has to be written down as well, unless its name says that it is private."""
    packages = {name for name in module_names() if hasattr(module(name), "__path__")}
    assert packages == set(PUBLIC)


@pytest.mark.parametrize("name", PROMISED.split())
def test_what_others_import_from_the_root_is_there(name: str) -> None:
    """The names that checks outside this repository use are public."""
    assert name in toolbatch.__all__


@pytest.mark.parametrize("name", PROMISED_BY_THE_CORE.split())
def test_what_others_import_from_the_core_is_there(name: str) -> None:
    """The names that checks outside this repository use are public."""
    assert name in toolbatch.core.__all__


@pytest.mark.parametrize("name", module_names())
def test_every_module_says_what_it_offers(name: str) -> None:
    """Each module has a literal `__all__`, and each name in it can be imported."""
    loaded = module(name)
    assert isinstance(loaded.__all__, list)
    for offered in loaded.__all__:
        assert hasattr(loaded, offered), f"{name} does not have {offered}"


@pytest.mark.parametrize("name", module_names())
def test_no_module_defines_in_public_what_it_does_not_offer(name: str) -> None:
    """A class or function without an underscore is in its module's `__all__`: private names look private."""
    loaded = module(name)
    assert loaded.__file__ is not None
    tree = ast.parse(Path(loaded.__file__).read_text(encoding="utf-8"))
    defined = {
        node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    }
    assert {name for name in defined if not name.startswith("_")} <= set(loaded.__all__)


@pytest.mark.timeout(300)  # the first time mypy reads everything
def test_a_misspelt_name_is_an_error_for_type_checkers(tmp_path: Path) -> None:
    """In every package, also where names are loaded when they are asked for (`py.typed`)."""
    page = tmp_path / "misspelt.py"
    page.write_text("".join(f"from {package} import no_such_name\n" for package in PUBLIC), encoding="utf-8")
    cache = f"--cache-dir={SOURCE.parents[1] / '.mypy_cache'}"
    # A process of its own: mypy raises the recursion limit of the one that it runs in, for good.
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary", cache, str(page)],
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.findall(r'Module "([\w.]+)" has no attribute "no_such_name"', ran.stdout)
    assert found == list(PUBLIC), ran.stdout + ran.stderr


# -- errors --------------------------------------------------------------------------------------------------------------


def drawn_tree(text: str) -> dict[str, tuple[str, ...]]:
    """The tree of a docstring: each error with its bases, its parent first."""
    bases: dict[str, tuple[str, ...]] = {}
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        found = re.match(r"    ([|` -]*)([A-Z]\w+)(?: \((\w+)\))?", line)
        if found is None:
            continue
        depth, name, builtin = len(found[1]), found[2], found[3]
        while above and above[-1][0] >= depth:
            above.pop()
        parent = above[-1][1] if above else "Exception"
        bases[name] = (parent, builtin) if builtin else (parent,)
        above.append((depth, name))
    return bases


def real_tree() -> dict[str, tuple[str, ...]]:
    """The same of the classes, but for those that reach nobody."""
    found, waiting = {}, [ToolbatchError]
    while waiting:
        error: Any = waiting.pop()
        found[error.__name__] = tuple(base.__name__ for base in error.__bases__)
        below = [sub for sub in error.__subclasses__() if sub.__module__.startswith("toolbatch.")]
        waiting += [sub for sub in below if not sub.__name__.startswith("_")]
    return found


def test_the_error_tree_is_as_drawn() -> None:
    """The tree in the docstring of the errors' module is the tree of the classes, built-in bases included."""
    for name in module_names():
        module(name)
    assert _errors.__doc__ is not None
    drawn = drawn_tree(_errors.__doc__)
    assert len(drawn) > 5
    assert drawn == real_tree()
    assert set(drawn) >= set(_errors.__all__)


def test_errors_can_be_caught_as_what_python_calls_them() -> None:
    """A bad value is a ValueError, a wrong type a TypeError, a wrong moment a RuntimeError."""
    assert issubclass(_errors.EncodingError, ValueError)
    assert issubclass(_errors.InvalidTypeError, TypeError)
    assert issubclass(_errors.BatchClosedError, RuntimeError)


@pytest.mark.parametrize("name", sorted(_errors.__all__))
def test_every_error_is_public_where_users_look(name: str) -> None:
    """Each error can be imported from the root and from the core, and is the same class there."""
    assert getattr(toolbatch, name) is getattr(toolbatch.core, name) is getattr(_errors, name)
    assert name in toolbatch.__all__


# -- what an import costs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["toolbatch", "toolbatch.core", "toolbatch.batch", "toolbatch.providers", "toolbatch.observe"]
)
def test_importing_loads_nothing_heavy(name: str) -> None:
    """Neither pydantic nor any SDK is loaded until it is used (P8)."""
    code = f"import sys; before = set(sys.modules); import {name}; print(*sorted(set(sys.modules) - before))"
    result = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=50)
    loaded = {found.partition(".")[0] for found in result.stdout.split()}
    assert "toolbatch" in loaded
    assert loaded & HEAVY == set()
