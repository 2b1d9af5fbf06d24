"""Every text that a user of the flow may see when something fails, in each language.

English is the default; the Swedish is the wording of rag-error-model.md. None of them holds a
value of the failure, so none can leak one.
"""

from __future__ import annotations

from typing import Literal

Language = Literal["en", "sv"]

MESSAGES: dict[Language, dict[str, str]] = {
    "en": {
        "RETRIEVAL_ERROR": "Could not retrieve sources right now.",
        "LLM_ERROR": "Could not generate an answer right now.",
        "RATE_LIMITED": "Too many requests. Wait a moment and try again.",
        "INTERNAL_ERROR": "An internal error occurred in the RAG engine.",
        "UNEXPECTED": "An internal error occurred. Try again later.",
        "halted": "I encountered an error and need assistance.",
        "notified": "A developer has been notified.",
        "not_notified": "The failure could not be queued; it is in the emergency log.",
        "error": "Error: {message}",
    },
    "sv": {
        "RETRIEVAL_ERROR": "Kunde inte hämta källor just nu.",
        "LLM_ERROR": "Kunde inte generera svar just nu.",
        "RATE_LIMITED": "För många förfrågningar. Vänta en stund och försök igen.",
        "INTERNAL_ERROR": "Ett internt fel uppstod i RAG-motorn.",
        "UNEXPECTED": "Ett internt fel uppstod. Försök igen senare.",
        "halted": "Ett fel uppstod och jag behöver hjälp.",
        "notified": "En utvecklare har underrättats.",
        "not_notified": "Felet kunde inte köas; det finns i nödloggen.",
        "error": "Fel: {message}",
    },
}


def safe_message(code: str, *, told: bool, language: Language) -> str:
    """What a user is told of a failure with client code `code`; `told`: a person was."""
    texts = MESSAGES[language]
    news = texts["notified"] if told else texts["not_notified"]
    brief = texts["error"].format(message=texts[code])
    return f"{texts['halted']} {news}\n\n{brief}"
