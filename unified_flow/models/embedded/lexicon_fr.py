# ruff: noqa: RUF001 -- the marks of the language itself
"""French."""

from unified_flow.models.embedded.lexicon import Lexicon, numerals, pattern, word_set

_HEAD = r"\b(?:quel(?:le)?s?)\s+(?=(?P<head>(?:%s)\b))"

LEXICON = Lexicon(
    kinds=(
        ("reason", pattern(r"\bpourquoi\b|\bpour\s+quelle\s+raison\b")),
        ("number", pattern(r"\bcombien\b(?:\s+d[e'’]\s*(?=(?P<head>\w+)))?")),
        ("person", pattern(r"(?:^|[\s,])(?:à\s+|de\s+|par\s+)?qui\b(?!\s+est-ce\s+qu)")),
        ("time", pattern(r"\bquand\b")),
        ("place", pattern(r"\b(?:où|d['’]où)\b")),
        ("manner", pattern(r"\bcomment\b")),
        ("time", pattern(_HEAD % "année|date|jour|mois|siècle|époque|période|heure")),
        ("number", pattern(_HEAD % "nombre|pourcentage|taille|longueur|hauteur|prix|température")),
        ("place", pattern(_HEAD % "ville|pays|lieu|endroit|région|île|fleuve|rivière|continent")),
        ("person", pattern(_HEAD % "personne|homme|femme|roi|reine|auteur|artiste|président")),
        (
            "definition",
            pattern(
                r"^\W*(?:qu['’]est-ce\s+qu(?:e|['’])\s*|c['’]est\s+quoi\s+)(?:un\s+|une\s+|le\s+|la\s+|l['’])?(?:[\w.:/-]+\s*){1,3}\W*$"
            ),
        ),
        ("thing", pattern(r"\bquel(?:le)?s?\s+(?=(?P<head>\w+))|\bqu(?:e|oi|['’])")),
    ),
    evidence={
        "time": pattern(
            r"\b1\d{3}\b|\b20\d\d\b|\b(?:janvier|février|mars|avril|mai|juin|juillet|août|septembre"
            r"|octobre|novembre|décembre|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche"
            r"|siècles?)\b"
        ),
        "number": pattern(
            r"\d|\b(?:un|une|deux|trois|quatre|cinq|six|sept|huit|neuf|dix|onze|douze|vingt|trente"
            r"|quarante|cinquante|cent|cents|mille|millions?|milliards?|moitié|douzaine)\b"
        ),
        "reason": pattern(r"\b(?:parce\s+qu|car|puisqu|à\s+cause|grâce|raison|afin|pour)"),
        "manner": pattern(r"\b(?:par|avec|via|en|grâce)\b"),
        "place": pattern(r"\b(?:dans|en|à|au|aux|près|vers|depuis|sur|chez)\b"),
        "person": pattern(r"\bpar\b"),
        "definition": pattern(
            r"\b(?:est|sont|était)\s+(?:un|une|le|la|l['’])|\b(?:désigne|signifie|appelé\w*)\b"
        ),
    },
    verbs=word_set(
        "est sont était étaient a ont avait avaient fait font peut peuvent doit doivent fut furent "
        "sera va vont"
    ),
    shell=word_set(
        "type genre sorte nom terme exemple nombre partie mot façon manière chose personne appelle "
        "appelé utilisé signifie expliquer expliquez décrire"
    ),
    operators=word_set(
        "plus moins avant après jusqu pendant entre seulement pas contre sans sous sur autre deux "
        "chaque même dernier dernière premier première prochain tous toutes jamais toujours"
    ),
    numerals=numerals(
        "zéro un/une/premier/première deux/deuxième trois/troisième quatre/quatrième "
        "cinq/cinquième six/sixième sept/septième huit/huitième neuf/neuvième dix/dixième onze "
        "douze treize quatorze quinze seize"
    ),
    naming_question=pattern(r"\b(?:appel|nom|terme|titre|mot)"),
    naming_sentence=pattern(r"\b(?:appel|nomm|nom\b|titre|surnomm|dit\b)|[\"«“”]"),
    continues=pattern(
        r"[\"'(«\s]*(?:il|elle|ils|elles|ce|cela|ceci|cette|ces|son|sa|ses|leur|leurs|celui-ci|celle-ci)\b"
    ),
    pronouns=word_set("il elle ils elles lui leurs celui celle ceux son sa ses"),
    possessives=frozenset({"son", "sa", "ses", "leurs"}),
    demonstratives=pattern(
        r"(?P<reference>cela|ceci|ça|celui-ci|celle-ci|ceux-ci)(?=\s*(?:[?.!,]|$)|\s+(?:est|sont|signifie|marche|fonctionne|veut)\b)"
    ),
    expletives=pattern(
        r"\b(?:y\s+a-t-il|il\s+y\s+a(?:vait)?|faut-il|il\s+faut|est-il\s+(?:possible|nécessaire|vrai)|s['’]agit-il|quelle\s+heure)\b"
        # In French the subject is repeated as a pronoun: "Comment les nœuds parlent-ils ?"
        r"|\b(?:les?|la|l['’]|des|du|un|une|ces?|cette)\s*\w+.*-t?-?(?:il|elle|ils|elles)\b"
        r"|(?<!^)\b(?-i:[A-ZÉÈ])\w+\s+\w+-t?-?(?:il|elle|ils|elles)\b"
    ),
    determiners=word_set(
        "le la les l un une des du de mon ma mes chaque tous toutes quel quelle quels quelles dans "
        "pour avec entre par sur et ou d"
    ),
    ordinals={
        "premier": 0,
        "première": 0,
        "second": 1,
        "seconde": 1,
        "deuxième": 1,
        "troisième": 2,
        "quatrième": 3,
        "dernier": -1,
        "dernière": -1,
    },
    ordinal_reference=pattern(
        r"\b(?P<reference>(?:le|la)\s+(?P<ordinal>premier|première|second|seconde|deuxième|troisième|quatrième|dernier|dernière)"
        r"(?=\s*(?:[?.!,]|$)|\s+(?:est|fait)\b))"
    ),
    instead=pattern(
        r"^\W*(?:et\s+|mais\s+)?(?:qu['’]en\s+est-il\s+d(?:e|u|es|['’])|quid\s+d(?:e|u|es|['’]))\s*(?P<topic>.+?)\W*$"
        r"|^\W*et\s+(?P<topic2>(?!qu|comment|où|combien|est|peut)[\w'’-]+(?:\s+[\w'’-]+){0,4})\W*$"
    ),
    more=pattern(
        r"^\W*(?:(?:peux-tu\s+|pouvez-vous\s+)?(?:m['’]en\s+dire\s+plus|en\s+dire\s+plus|dites?-m['’]en\s+plus|expliquer)"
        r"|continuez?|plus\s+de\s+détails|(?:et\s+|mais\s+)?(?:pourquoi|comment|quand|où|qui)(?:\s+(?:ça|donc|pas))?"
        r"|(?:un\s+|des\s+)?exemples?)\W*$"
    ),
    genitive="de {}",
    greeting=pattern(
        r"^\W*(?:bonjour|bonsoir|salut|coucou)(?:\s+(?:à\s+tous|tout\s+le\s+monde))?\W*$"
    ),
    thanks=pattern(
        r"^\W*(?:ok\W+|super\W+|parfait\W+)?(?:merci(?:\s+(?:beaucoup|bien))?|au\s+revoir|à\s+bientôt)\W*$"
    ),
    recall=pattern(
        r"\bqu['’](?:ai-je|est-ce\s+que\s+j['’]ai)\s+(?:demandé|dit)\b|\bquelle\s+était\s+ma\s+"
        r"(?:première|dernière)\s+question\b|\bmes\s+questions\s+précédentes\b"
    ),
    first_recalled=pattern(r"\bpremière\b"),
    compound=pattern(
        r"\?\s+(?=\w)|\s*[,;]?\s+et\s+(?=(?:quel(?:le)?s?|comment|qui|quand|où|pourquoi|combien|qu['’]est-ce)\b)"
    ),
)
