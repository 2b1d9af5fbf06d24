"""Every error the flow raises on purpose.

UnifiedFlowError
├── InputError                what the caller sent cannot be a question (no intervention)
├── ConfigError               settings, a recipe or a tool name that does not exist
│   ├── RecipeError
│   ├── ToolNotFoundError
│   └── NoTurnError           no turn can be begun where it would have to be written
├── ModelError                a language model answered, and the answer is no use
│   ├── EmptyReplyError
│   ├── CutReplyError
│   ├── PromptTooLargeError   it was not asked: a section is over its budget
│   ├── ReplyTooLargeError
│   ├── NotJSONError          also a json.JSONDecodeError
│   ├── SchemaMismatchError
│   ├── GenerationTimeoutError
│   └── CircuitOpenError      it was not asked: it keeps failing
├── RetrievalError            the document index or another store cannot be read
├── ToolError
│   ├── ToolArgumentError
│   ├── ToolTimeoutError
│   ├── ToolServerError       an MCP server cannot be reached, or has gone
│   ├── HumanNeededError      a tool asks a person: an escalation
│   ├── ToolDeniedError       also a PermissionError
│   ├── FileUnusableError, PathRefusedError    of a file (`tools/errors.py`)
│   └── PageError             a web page (`web/errors.py`)
├── QueueFullError            the intervention queue is full and new turns are refused
├── LimitReachedError         a loop of the turn has run to its limit
├── PipelineTimeoutError      the turn's time is up
├── DraftRejectedError        the verdict is FAIL
└── PhaseError                a phase failed: the turn has halted
    ├── QueryAnalyzerError … SaveError (one for each phase)
    └── LoopLimitError

What the network does (httpx errors) is not wrapped; `classify.py` says what it means where.
"""

from unified_flow.errors.causes import (
    CircuitOpenError,
    ConfigError,
    CutReplyError,
    DraftRejectedError,
    EmptyReplyError,
    GenerationTimeoutError,
    HumanNeededError,
    InputError,
    LimitReachedError,
    Loop,
    ModelError,
    NotJSONError,
    NoTurnError,
    PipelineTimeoutError,
    PromptTooLargeError,
    QueueFullError,
    RecipeError,
    ReplyTooLargeError,
    RetrievalError,
    SchemaMismatchError,
    ToolArgumentError,
    ToolDeniedError,
    ToolError,
    ToolNotFoundError,
    ToolServerError,
    ToolTimeoutError,
    UnifiedFlowError,
    wire_name,
)
from unified_flow.errors.phases import (
    ContextGathererError,
    CoordinatorError,
    LoopLimitError,
    PhaseError,
    PlannerError,
    QueryAnalyzerError,
    ReflectionError,
    SaveError,
    SynthesisError,
    ValidationError,
)

__all__ = [
    "CircuitOpenError",
    "ConfigError",
    "ContextGathererError",
    "CoordinatorError",
    "CutReplyError",
    "DraftRejectedError",
    "EmptyReplyError",
    "GenerationTimeoutError",
    "HumanNeededError",
    "InputError",
    "LimitReachedError",
    "Loop",
    "LoopLimitError",
    "ModelError",
    "NoTurnError",
    "NotJSONError",
    "PhaseError",
    "PipelineTimeoutError",
    "PlannerError",
    "PromptTooLargeError",
    "QueryAnalyzerError",
    "QueueFullError",
    "RecipeError",
    "ReflectionError",
    "ReplyTooLargeError",
    "RetrievalError",
    "SaveError",
    "SchemaMismatchError",
    "SynthesisError",
    "ToolArgumentError",
    "ToolDeniedError",
    "ToolError",
    "ToolNotFoundError",
    "ToolServerError",
    "ToolTimeoutError",
    "UnifiedFlowError",
    "ValidationError",
    "wire_name",
]
