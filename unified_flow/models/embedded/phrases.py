# ruff: noqa: RUF001 -- Chinese and French punctuation
"""What the embedded model says in its own words, in the language of the question."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Phrases:
    quotes: str
    nothing: str
    nothing_for: str  # {question}
    nothing_remembered: str
    no_documents: str
    greeting: str
    thanks: str
    asked: str
    never_asked: str
    lines: str  # {source}
    no_matches: str  # {pattern}
    matches: str  # {pattern}
    no_files: str  # {pattern}
    files: str  # {pattern}
    unclear_reference: str  # {reference}
    no_content: str
    gibberish: str

    def own(self) -> tuple[str, ...]:
        """The beginnings of every sentence that is the model's own and claims nothing."""
        values = (getattr(self, name) for name in self.__dataclass_fields__)
        return tuple(value.partition("{")[0].strip() for value in values)


_ENGLISH = Phrases(
    quotes="What the documents say, in their own words:",
    nothing="The documents do not hold an answer to this.",
    nothing_for="The documents do not hold an answer to: {question}",
    nothing_remembered="Nothing is remembered of you.",
    no_documents="There are no documents to search, so this cannot be answered.",
    greeting="Hello. Ask me something about your documents.",
    thanks="You are welcome.",
    asked="What you asked before:",
    never_asked="This is the first question of this session.",
    lines="From {source}:",
    no_matches="No line matches {pattern}.",
    matches="Lines that match {pattern}:",
    no_files="No file matches {pattern}.",
    files="Files that match {pattern}:",
    unclear_reference="What does “{reference}” refer to?",
    no_content="What would you like to know, and about what?",
    gibberish="I could not read that as a question. What would you like to know?",
)

_SWEDISH = Phrases(
    quotes="Så här står det i dokumenten:",
    nothing="Dokumenten har inget svar på detta.",
    nothing_for="Dokumenten har inget svar på: {question}",
    nothing_remembered="Det finns inget sparat om dig.",
    no_documents="Det finns inga dokument att söka i, så detta kan inte besvaras.",
    greeting="Hej. Fråga mig något om dina dokument.",
    thanks="Varsågod.",
    asked="Detta har du frågat tidigare:",
    never_asked="Detta är den första frågan i den här sessionen.",
    lines="Ur {source}:",
    no_matches="Ingen rad matchar {pattern}.",
    matches="Rader som matchar {pattern}:",
    no_files="Ingen fil matchar {pattern}.",
    files="Filer som matchar {pattern}:",
    unclear_reference="Vad syftar ”{reference}” på?",
    no_content="Vad vill du veta, och om vad?",
    gibberish="Jag kunde inte läsa det som en fråga. Vad vill du veta?",
)

_FRENCH = Phrases(
    quotes="Ce que disent les documents, mot pour mot :",
    nothing="Les documents ne contiennent pas de réponse à cette question.",
    nothing_for="Les documents ne contiennent pas de réponse à : {question}",
    nothing_remembered="Rien n'est retenu à votre sujet.",
    no_documents="Il n'y a aucun document à consulter : impossible de répondre.",
    greeting="Bonjour. Posez-moi une question sur vos documents.",
    thanks="Je vous en prie.",
    asked="Ce que vous avez demandé auparavant :",
    never_asked="C'est la première question de cette session.",
    lines="Extrait de {source} :",
    no_matches="Aucune ligne ne correspond à {pattern}.",
    matches="Lignes qui correspondent à {pattern} :",
    no_files="Aucun fichier ne correspond à {pattern}.",
    files="Fichiers qui correspondent à {pattern} :",
    unclear_reference="À quoi « {reference} » fait-il référence ?",
    no_content="Que voulez-vous savoir, et à quel sujet ?",
    gibberish="Je n'ai pas pu lire cela comme une question. Que voulez-vous savoir ?",
)

_CHINESE = Phrases(
    quotes="文档中的原文：",
    nothing="文档中没有这个问题的答案。",
    nothing_for="文档中没有这个问题的答案：{question}",
    nothing_remembered="没有记住任何关于您的内容。",
    no_documents="没有可以检索的文档，因此无法回答。",
    greeting="你好。请提出一个关于您的文档的问题。",
    thanks="不客气。",
    asked="您之前问过：",
    never_asked="这是本次会话的第一个问题。",
    lines="摘自 {source}：",
    no_matches="没有匹配 {pattern} 的行。",
    matches="匹配 {pattern} 的行：",
    no_files="没有匹配 {pattern} 的文件。",
    files="匹配 {pattern} 的文件：",
    unclear_reference="“{reference}”指的是什么？",
    no_content="您想了解什么，关于什么？",
    gibberish="我没能把这读成一个问题。您想了解什么？",
)

_KNOWN = {"en": _ENGLISH, "sv": _SWEDISH, "fr": _FRENCH, "zh": _CHINESE}
ALL = tuple(_KNOWN.values())


def phrases_of(language: str) -> Phrases:
    return _KNOWN.get(language, _ENGLISH)
