"""Language-aware text analysis: words, stemmed terms, sentences and the language itself."""

from unified_flow.lib.text.language import language_of, language_of_document
from unified_flow.lib.text.segmentation import sentences, words
from unified_flow.lib.text.terms import query_terms, share_in_question, terms, terms_of_word

__all__ = [
    "language_of",
    "language_of_document",
    "query_terms",
    "sentences",
    "share_in_question",
    "terms",
    "terms_of_word",
    "words",
]
