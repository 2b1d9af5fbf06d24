# ruff: noqa: RUF001 -- the marks of the language itself
"""Swedish."""

from unified_flow.models.embedded.lexicon import Lexicon, numerals, pattern, word_set

_HEAD = r"\b(?:vilke[nt]|vilka|vad\s+för)\s+(?=(?P<head>(?:%s)\w*))"

LEXICON = Lexicon(
    kinds=(
        ("reason", pattern(r"\bvarför\b|\bav\s+vilken\s+anledning\b|\bvad\s+beror\b")),
        (
            "number",
            pattern(
                r"\bhur\s+(?:många|mycket)\s+(?=(?P<head>\w+))|\bhur\s+(?:långt?|stor[at]?|gammal|gamla|ofta|höga?|högt|djupt?)\b"
            ),
        ),
        ("person", pattern(r"\bvem(?:s)?\b|\bvilka\s+personer\b")),
        ("time", pattern(r"\bnär\b")),
        ("place", pattern(r"\bvar(?:t|ifrån)?\b(?!\s+(?:för|det)\b)")),
        ("manner", pattern(r"\bhur\b")),
        ("time", pattern(_HEAD % "år|datum|dag|månad|tid|århundrade|vecka")),
        ("number", pattern(_HEAD % "antal|procent|andel|storlek|temperatur|längd|höjd")),
        ("place", pattern(_HEAD % "stad|land|plats|ort|område|region|ö\\b|flod|sjö")),
        ("person", pattern(_HEAD % "person|kung|drottning|författare|konstnär|man\\b|kvinna")),
        (
            "definition",
            pattern(
                r"^\W*(?:vad\s+(?:är|var|menas\s+med|betyder|innebär)\s+(?:en\s+|ett\s+)?(?:[\w.:/-]+\s*){1,3}\W*$)"
            ),
        ),
        ("thing", pattern(r"\b(?:vilke[nt]|vilka)\s+(?=(?P<head>\w+))|\bvad\b")),
    ),
    evidence={
        "time": pattern(
            r"\b1\d{3}\b|\b20\d\d\b|\b(?:januari|februari|mars|april|maj|juni|juli|augusti"
            r"|september|oktober|november|december|måndag|tisdag|onsdag|torsdag|fredag|lördag"
            r"|söndag)\w*\b|-talet\b|\bårhundrade|\bår\b"
        ),
        "number": pattern(
            r"\d|\b(?:en|ett|två|tre|fyra|fem|sex|sju|åtta|nio|tio|elva|tolv|tjugo|trettio|fyrtio"
            r"|femtio|hundra|tusen|miljon\w*|miljard\w*|hälften|dussin)\b"
        ),
        "reason": pattern(
            r"\b(?:eftersom|därför|på\s+grund\s+av|beror|orsak\w*|för\s+att|så\s+att)\b"
        ),
        "manner": pattern(r"\b(?:genom|med|via|som)\b"),
        "place": pattern(r"\b(?:i|på|vid|nära|till|från|inom|utanför|kring)\b"),
        "person": pattern(r"\bav\b"),
        "definition": pattern(
            r"\b(?:är|var)\s+(?:en|ett|den|det)\b|\b(?:betyder|kallas|innebär|avser)\b"
        ),
    },
    verbs=word_set(
        "är var blev blir gör gjorde har hade kan kunde ska skall skulle bör får fick måste finns "
        "fanns heter hette"
    ),
    shell=word_set(
        "typ slag sort namn namnet ord ordet exempel antal antalet del delen sätt sak person "
        "kallas heter används många mycket betyder förklara beskriv"
    ),
    operators=word_set(
        "mest minst mer mindre före efter innan tills under mellan bara endast inte mot utan "
        "över annan andra båda varje samma sista första nästa alla tidig sen aldrig alltid"
    ),
    numerals=numerals(
        "noll en/ett/första två/andra tre/tredje fyra/fjärde fem/femte sex/sjätte sju/sjunde "
        "åtta/åttonde nio/nionde tio/tionde elva tolv tretton fjorton femton sexton sjutton "
        "arton nitton tjugo"
    ),
    naming_question=pattern(r"\b(?:kalla|heter|hette|namn|benäm|ord|titel)"),
    naming_sentence=pattern(r"\b(?:kalla|heter|hette|namn|benäm|titel)|[\"“”]"),
    # "Den" opens a sentence as an article too; as a pronoun it has its verb right behind it.
    continues=pattern(
        r"[\"'(]*(?:(?:han|hon|detta|denna|dessa|hans|hennes|dess|deras|sådan\w*|båda|där|här|dock)\b"
        r"|(?:den|det|de)\s+(?:\w+r|var|kan|ska|måste|\w+de|finns|behövs)\b)"
    ),
    pronouns=word_set("den det de dem dess deras han honom hans hon henne hennes"),
    possessives=word_set("dess deras hans hennes"),
    demonstratives=pattern(
        r"(?P<reference>detta|denna|dessa|den\s+där|det\s+där)(?=\s*(?:[?.!,]|$)|\s+(?:är|var|betyder|fungerar|gör)\b)"
    ),
    expletives=pattern(
        r"\bdet\s+(?:finns|fanns|gick|går|regnar|krävs|behövs)\b|\b(?:finns|fanns|går|krävs|behövs|är|var|blir)\s+det\b"
        r"|\b(?:den|det|de)\s+(?!är\b|var\b|har\b|kan\b|gör\b|gjorde\b|fungerar\b|heter\b|ska\b|som\b|bra\b)\w{2,}(?:a|e|t|n)\b"
    ),
    determiners=word_set(
        "en ett den det de min mitt mina din varje alla några någon ingen båda vilken vilket vilka "
        "av i för med mellan till från om på vid och eller under"
    ),
    ordinals={
        "första": 0,
        "förra": 0,
        "andra": 1,
        "tredje": 2,
        "fjärde": 3,
        "femte": 4,
        "sista": -1,
        "senare": -1,
    },
    ordinal_reference=pattern(
        r"\b(?P<reference>(?:den|det)\s+(?P<ordinal>första|andra|tredje|fjärde|femte|sista)"
        r"(?:\s+(?:alternativet|punkten|saken|svaret))?(?=\s*(?:[?.!,]|$)|\s+(?:är|gör|betyder)\b))"
    ),
    instead=pattern(
        r"^\W*(?:och|men|så)?\s*(?:hur\s+är\s+det\s+med|vad\s+gäller\s+för|hur\s+blir\s+det\s+med)\s+(?P<topic>.+?)\W*$"
        r"|^\W*och\s+(?P<topic2>(?!vad|hur|vem|när|var|varför|vilk|är|kan|gör)[\w'’-]+(?:\s+[\w'’-]+){0,4})\W*$"
    ),
    more=pattern(
        r"^\W*(?:(?:kan\s+du\s+)?(?:berätta|säga|förklara)\s+mer|mer(?:\s+detaljer)?|fortsätt|utveckla"
        r"|(?:och\s+|men\s+)?(?:varför|hur|när|var|vem)(?:\s+(?:då|det|inte))?|(?:några\s+|ett\s+)?exempel"
        r"|vad\s+mer|något\s+mer)(?:\s+tack)?\W*$"
    ),
    genitive="{}s",
    greeting=pattern(
        r"^\W*(?:hej(?:san)?|hallå|tjena|god\s?(?:morgon|kväll|dag|middag))(?:\s+(?:där|alla|på\s+dig))?\W*$"
    ),
    thanks=pattern(
        r"^\W*(?:ok(?:ej)?\W+|bra\W+|toppen\W+)?(?:tack(?:\s+(?:så\s+mycket|ska\s+du\s+ha))?|hej\s?då|vi\s+ses)\W*$"
    ),
    recall=pattern(
        r"\bvad\s+(?:frågade|sa|undrade)\s+jag\b|\bvad\s+har\s+jag\s+(?:frågat|sagt)\b"
        r"|\bvad\s+var\s+min\s+(?:första|senaste|förra|sista)\s+fråga\b|\bmina\s+tidigare\s+frågor\b"
    ),
    first_recalled=pattern(r"\bförst\w*\b"),
    compound=pattern(
        r"\?\s+(?=\w)|\s*[,;]?\s+och\s+(?=(?:vad|hur|vem|när|var|varför|vilken|vilket|vilka)\s+(?:är|var"
        r"|gör|gjorde|kan|ska|har|hade|många|mycket|fungerar|blev)\b)"
    ),
)
