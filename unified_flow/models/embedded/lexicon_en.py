# ruff: noqa: RUF001 -- the marks of the language itself
"""English."""

from unified_flow.models.embedded.lexicon import Lexicon, numerals, pattern, word_set

_TIMES = "year|date|day|month|decade|time|century|era|period|age|season|week|hour"
_NUMBERS = (
    "percentage|percent|proportion|fraction|number|amount|population|rate|score|cost|price|"
    "temperature|distance|size|length|height|weight|depth|width|speed|version|port"
)
_PLACES = (
    "city|cities|country|countries|place|location|region|area|town|continent|county|counties|"
    "street|river|island|village|nation|province|site|district|folder|directory|path"
)
_PERSONS = (
    "person|man|woman|people|king|queen|president|minister|pope|saint|poet|wife|husband|"
    r"brother|sister|father|mother|son|daughter|\w{3,}(?:er|or|ist|ian|man|woman)s?"
)
_HEAD = r"\b(?:what|which)\s+(?=(?P<head>(?:\w+\s+){0,1}?(?:%s)\b))"
_ADJECTIVES = "long|far|old|large|big|tall|high|often|fast|deep|wide|heavy|late|early|small|close"

LEXICON = Lexicon(
    kinds=(
        ("reason", pattern(r"\bwhy\b|\bwhat\s+(?:is|was|are|were)\s+the\s+(?:reason|cause)s?\b")),
        (
            "number",
            pattern(rf"\bhow\s+(?:many|much)\s+(?=(?P<head>\w+))|\bhow\s+(?:{_ADJECTIVES})\b"),
        ),
        ("person", pattern(r"\b(?:who|whom|whose)\b")),
        ("time", pattern(r"\bwhen\b")),
        ("place", pattern(r"\bwhere\b")),
        ("manner", pattern(r"\bhow\b")),
        ("time", pattern(_HEAD % _TIMES)),
        ("number", pattern(_HEAD % _NUMBERS)),
        ("place", pattern(_HEAD % _PLACES)),
        ("person", pattern(_HEAD % _PERSONS)),
        (
            "definition",
            pattern(
                r"^\W*(?:what\s+(?:is|are|was|were)\s+(?:an?\s+|the\s+)?(?:[\w.:/-]+\s*){1,3}\W*$"
                r"|what\s+does\s+.{1,40}\s+(?:mean|stand\s+for)\b|define\b|explain\s+what\b)"
            ),
        ),
        ("thing", pattern(r"\b(?:what|which)\s+(?=(?P<head>\w+))")),
    ),
    evidence={
        "time": pattern(
            r"\b1\d{3}s?\b|\b20\d\ds?\b|\b\d{1,2}(?:st|nd|rd|th)\s+century|\b\d{3,4}\s+(?:AD|BC)"
            r"|\b(?:january|february|march|april|may|june|july|august|september|october|november"
            r"|december|monday|tuesday|wednesday|thursday|friday|saturday|sunday|century"
            r"|centuries|decades?)\b|\b\d{1,2}:\d\d\b"
        ),
        "number": pattern(
            r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty"
            r"|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundreds?|thousands?|millions?"
            r"|billions?|trillions?|dozens?|half|quarter|third|double|twice|once|single)\b"
        ),
        "reason": pattern(
            r"\b(?:because|due\s+to|since|so\s+that|in\s+order\s+to|caus(?:e|es|ed|ing)|reasons?"
            r"|as\s+a\s+result|therefore|thus|owing\s+to|led\s+to|to\s+avoid|so\s+as)\b"
        ),
        "manner": pattern(r"\b(?:by|using|through|via|with|as)\b"),
        "place": pattern(r"\b(?:in|at|near|to|from|on|into|within|outside|throughout|around)\b"),
        "person": pattern(r"\bby\b"),
        "definition": pattern(
            r"\b(?:is|are|was|were)\s+(?:an?|the|one|used|defined)\b|\b(?:means|refers\s+to"
            r"|stands\s+for|is\s+called|known\s+as|defined\s+as)\b"
        ),
    },
    units=(
        (pattern(r"percent|proportion|fraction|\bshare\b"), pattern(r"%|\bper\s?cent")),
        (
            pattern(
                r"how\s+much\s+(?:money|did\b.*\b(?:cost|pay|spend|earn))|\bcost|\bprice|\bpaid\b"
            ),
            pattern(r"[$£€¥]|\b(?:dollars?|euros?|pounds?|kronor)\b"),
        ),
        (
            pattern(r"how\s+long|how\s+many\s+(?:years|months|days|weeks|hours|minutes|seconds)"),
            pattern(r"\b(?:years?|months?|weeks?|days?|hours?|minutes?|seconds?|decades?|m?s)\b"),
        ),
        (
            pattern(r"how\s+old|what\s+age"),
            pattern(r"\baged?\b|\byears\s+old\b|\bold(?:er|est)?\b"),
        ),
        (
            pattern(
                r"how\s+(?:far|tall|high|deep|wide|large|big)|how\s+many\s+(?:miles|k?m\b|met)"
            ),
            pattern(r"\b(?:km|kilomet\w+|miles?|met(?:er|re)s?|m|feet|ft|inch\w*|cm|mm|acres?)\b"),
        ),
    ),
    verbs=word_set(
        "is are was were do does did has have had can could will would should may might must be "
        "been being"
    ),
    shell=word_set(
        "type kind sort name term example number amount part portion word phrase way thing person "
        "people someone something anyone purpose reason result following called known named used "
        "many much long mean meaning tell explain describe define please"
    ),
    operators=word_set(
        "most least more less few before after until during between only not against without under "
        "over other another both each same last first next any all early late former later "
        "because while never always"
    ),
    numerals=numerals(
        "zero one/first two/second three/third four/fourth five/fifth six/sixth seven/seventh "
        "eight/eighth nine/ninth ten/tenth eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen twenty"
    ),
    naming_question=pattern(r"\b(?:call|term|name|known|title|refer|word|phrase|express)"),
    naming_sentence=pattern(
        r"\b(?:call|term|name|known\s+as|title|refer|dubbed|nickname|denoted)|[\"“”]"
    ),
    continues=pattern(
        r"[\"'(]*(?:however,?\s+|also,?\s+|later,?\s+|then,?\s+|thus,?\s+|but\s+|and\s+)?"
        r"(?:he|she|it|they|this|these|those|his|her|its|their|such|that|both|another"
        r"|the\s+(?:latter|former)|there|here|however)\b"
    ),
    pronouns=word_set("it they them he him she her his its their theirs itself themselves"),
    belonging=word_set("of for"),
    possessives=word_set("its their his theirs"),
    demonstratives=pattern(
        r"(?:^|\b(?:about|of|is|was|does|do|did|like|by|with|for|in|on|to|from|than|use|uses"
        r"|using|mean|means|explain|define|call)\s+)"
        r"(?P<reference>this|that|these|those|(?:this|that)\s+one)"
        r"(?=\s*(?:[?.!,]|$)|\s+(?:again|further|better|more|once|in\s+(?:more|other|simple\w*)"
        r"|is|are|was|were|mean|means|work|works|do|does|happen|happens"
        r"|so|possible|different|important|needed|used|called|stand|come)\b)"
    ),
    expletives=pattern(
        r"\b(?:is|was|does|did|will|would)\s+it\s+(?:\w+\s+)?(?:possible|necessary|true|safe|ok|okay"
        r"|better|worth|make\s+sense|matter|take|cost|mean|called|that\b)|what\s+time\s+is\s+it"
        r"|\bit\s+(?:is|was)\s+(?:possible|necessary|true|that)\b|\bhow\s+(?:long|much)\s+does\s+it"
        r"\s+take\b|\bmakes?\s+it\s+(?:possible|easy|hard|easier|harder)\b"
    ),
    determiners=word_set(
        "the a an my your our each every all some any no both most many several which "
        "of in for with between to from by about on at and or under during"
    ),
    ordinals={
        "first": 0,
        "former": 0,
        "second": 1,
        "third": 2,
        "fourth": 3,
        "fifth": 4,
        "last": -1,
        "latter": -1,
        "other": 1,
    },
    ordinal_reference=pattern(
        r"\b(?P<reference>the\s+(?:(?P<ordinal>first|second|third|fourth|fifth|last|other)\s+"
        r"(?:one|option|item|point|thing|quote|answer)|(?P<pair>former|latter)(?=\s*(?:[?.!,]|$|\s"
        r"+(?:is|was|does|do|one|work|mean)\b))))"
    ),
    instead=pattern(
        r"^\W*(?:and|so|but|ok(?:ay)?,?)?\s*(?:what|how)\s+about\s+(?P<topic>.+?)\W*$"
        r"|^\W*and\s+(?P<topic2>(?:(?:in|for|with|on|at|of|by|from|the|a|an)\s+)?"
        r"(?!what|how|who|when|where|why|which|is|are|does|do|did|can)[\w'’-]+(?:\s+[\w'’-]+){0,4})\W*$"
    ),
    more=pattern(
        r"^\W*(?:(?:can|could)\s+you\s+)?(?:please\s+)?(?:tell\s+me\s+more|say\s+more|explain\s+more"
        r"|go\s+on|continue|more(?:\s+details?)?|details|elaborate|(?:and\s+|but\s+)?(?:why|how|when|where"
        r"|who)(?:\s+(?:so|not|exactly|then))?|how\s+come|(?:an\s+|some\s+|any\s+)?examples?|give\s+me\s+"
        r"(?:an\s+example|examples|more)|what\s+else|anything\s+else|are\s+you\s+sure|really)"
        r"(?:\s+please)?\W*$"
    ),
    genitive="{}'s",
    greeting=pattern(
        r"^\W*(?:hi|hello|hey|good\s+(?:morning|afternoon|evening|day)|greetings|howdy)"
        r"(?:\s+(?:there|all|everyone|you))?\W*$"
    ),
    thanks=pattern(
        r"^\W*(?:ok(?:ay)?\W+|great\W+|perfect\W+)?(?:thanks?(?:\s+you)?(?:\s+(?:a\s+lot|so\s+much"
        r"|very\s+much|again))?|thx|cheers|bye|goodbye|see\s+you|that(?:'s|\s+is)\s+all)\W*$"
    ),
    recall=pattern(
        r"\bwhat\s+(?:did|have)\s+I\s+(?:just\s+)?(?:ask|asked|say|said)\b|\bwhat\s+was\s+my\s+"
        r"(?:first|last|previous|earlier)\s+question\b|\bmy\s+(?:earlier|previous)\s+questions\b"
        r"|\bwhat\s+(?:have\s+we|did\s+we)\s+(?:just\s+)?(?:talk|discuss|talked|discussed|cover)"
        r"|\brepeat\s+(?:my|the)\s+(?:last\s+|previous\s+)?question\b"
    ),
    first_recalled=pattern(r"\bfirst\b"),
    compound=pattern(
        r"\?\s+(?=\w)|\s*[,;]?\s+and\s+(?=(?:what|how|who|when|where|why|which)\s+(?:is|are|was|were"
        r"|do|does|did|can|could|should|will|has|have|many|much)\b)"
    ),
)
