"""Language-aware text analysis: words, stemmed terms, sentences and the language itself."""

from unified_flow.lib.text.language import language_of
from unified_flow.lib.text.segmentation import sentences, words
from unified_flow.lib.text.terms import share_in_question, terms, terms_of_word

__all__ = [
    "language_of",
    "sentences",
    "share_in_question",
    "terms",
    "terms_of_word",
    "words",
]
