"""What the built-in tools are called; no others may be called so."""

CALCULATE = "calculate"
DOC_SEARCH = "doc.search"
FILE_GLOB = "file.glob"
FILE_GREP = "file.grep"
FILE_READ = "file.read"
HUMAN_ASK = "human.ask"
INTERNET_RESEARCH = "internet.research"
MEMORY_CREATE = "memory.create"
MEMORY_QUERY = "memory.query"
MEMORY_UPDATE = "memory.update"

SEARCHES = frozenset({DOC_SEARCH, INTERNET_RESEARCH})
FAMILIES = frozenset({"doc", "file", "human", "internet", "memory"})
"""What stands before the dot, and so no server may be called."""
