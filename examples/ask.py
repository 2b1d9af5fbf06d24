"""One question, answered from a folder of documents: python examples/ask.py [QUESTION]"""

import sys

from unified_flow import UnifiedFlow

question = sys.argv[1] if len(sys.argv) > 1 else "What is a recipe?"
turn = UnifiedFlow.from_config(docs="architecture").ask(question)

print(turn.response)
for citation in turn.citations:
    print(f"  {citation.source}: {citation.heading}")
if turn.abstained:
    print("  the documents do not say")
