"""Search by meaning beside search by words: an optional store of vectors (extra: vectors).

`embedding.py` makes vectors of texts, `store.py` keeps them in Qdrant, `fusion.py` joins both
rankings, `hybrid.py` is what `documents.py` uses. Every failure is a RetrievalError.
"""
