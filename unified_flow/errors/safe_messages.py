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
        "question_empty": "The question must not be empty.",
        "question_too_long": "The question must have 1-2000 characters.",
        "question_unreadable": "The question holds characters that are no text.",
        "field_wrong": "The field {field} is missing or not acceptable.",
        "model_unknown": "There is no such model; the only one is unified-flow.",
        "body_no_json": "The request body is not valid JSON.",
        "status_400": "The request is not valid.",
        "status_401": "This needs a valid bearer token.",
        "status_403": "This is not allowed here.",
        "status_404": "There is no such thing here.",
        "status_405": "This method is not allowed here.",
        "status_408": "The request came too slowly.",
        "status_409": "Somebody changed this meanwhile, or it is not in that state.",
        "retry_busy": "The turn is running already.",
        "retry_failed": "The turn failed again.",
        "retry_impossible": "There is no turn that could go on.",
        "status_413": "The request is too large.",
        "status_415": "The request body must be JSON (Content-Type: application/json).",
        "status_422": "The request does not have the expected form.",
        "status_429": "Rate limit exceeded. Maximum {rate}.",
        "per_second": "{n} requests per second",
        "per_minute": "{n} requests per minute",
        "per_hour": "{n} requests per hour",
        "unavailable": "The service cannot take the request right now. Try again later.",
        "graceful_retrieval": "Vector search temporarily unavailable. Please try again.",
        "graceful_model": "LLM service temporarily unavailable. Please try again.",
        "graceful_pipeline": "Request processing timed out. Please try again.",
        "graceful_fallback": (
            "Generation service temporarily unavailable. Retrieved content below:"
        ),
        "graceful_nothing": "No relevant content found in the textbook about your query.",
        "ui_VALIDATION_ERROR": "Please correct what you entered.",
        "ui_RETRIEVAL_ERROR": "We could not fetch the sources right now. Try again in a while.",
        "ui_LLM_ERROR": "We could not generate an answer right now. Try again.",
        "ui_RATE_LIMITED": "Too many requests. Please wait a moment.",
        "ui_INTERNAL_ERROR": "Something went wrong on our side. Try again later.",
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
        "question_empty": "Frågan får inte vara tom.",
        "question_too_long": "Frågan måste ha 1-2000 tecken.",
        "question_unreadable": "Frågan innehåller tecken som inte är text.",
        "field_wrong": "Fältet {field} saknas eller kan inte godtas.",
        "model_unknown": "Det finns ingen sådan modell; den enda är unified-flow.",
        "body_no_json": "Anropets innehåll är inte giltig JSON.",
        "status_400": "Anropet är inte giltigt.",
        "status_401": "Detta kräver en giltig bearer-token.",
        "status_403": "Detta är inte tillåtet här.",
        "status_404": "Det finns inget sådant här.",
        "status_405": "Metoden är inte tillåten här.",
        "status_408": "Anropet kom för långsamt.",
        "status_409": "Någon har ändrat detta, eller så är det inte i det läget.",
        "retry_busy": "Frågan besvaras redan.",
        "retry_failed": "Det misslyckades igen.",
        "retry_impossible": "Det finns inget som kan fortsätta.",
        "status_413": "Anropet är för stort.",
        "status_415": "Anropets innehåll måste vara JSON (Content-Type: application/json).",
        "status_422": "Anropet har inte den väntade formen.",
        "status_429": "För många anrop. Högst {rate}.",
        "per_second": "{n} anrop per sekund",
        "per_minute": "{n} anrop per minut",
        "per_hour": "{n} anrop per timme",
        "unavailable": "Tjänsten kan inte ta emot anropet just nu. Försök igen senare.",
        "graceful_retrieval": "Sökningen är tillfälligt otillgänglig. Försök igen.",
        "graceful_model": "Språkmodellen är tillfälligt otillgänglig. Försök igen.",
        "graceful_pipeline": "Behandlingen tog för lång tid. Försök igen.",
        "graceful_fallback": "Svar kan inte skapas just nu. Hittat innehåll nedan:",
        "graceful_nothing": "Inget relevant innehåll hittades i läroboken om din fråga.",
        "ui_VALIDATION_ERROR": "Rätta det du har skrivit.",
        "ui_RETRIEVAL_ERROR": "Vi kunde inte hämta underlaget just nu. Prova igen om en stund.",
        "ui_LLM_ERROR": "Vi kunde inte generera ett svar just nu. Prova igen.",
        "ui_RATE_LIMITED": "För många förfrågningar. Vänta en stund.",
        "ui_INTERNAL_ERROR": "Något gick fel hos oss. Försök igen senare.",
    },
}


def safe_message(code: str, *, notified: bool, language: Language) -> str:
    """What a user reads of a failure with client code `code`; `notified`: a person was."""
    texts = MESSAGES[language]
    news = texts["notified"] if notified else texts["not_notified"]
    brief = texts["error"].format(message=texts[code])
    return f"{texts['halted']} {news}\n\n{brief}"
