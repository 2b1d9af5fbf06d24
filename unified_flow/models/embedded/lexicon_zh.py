# ruff: noqa: RUF001 -- the marks of the language itself
"""Chinese, simplified and traditional."""

from unified_flow.models.embedded.lexicon import Lexicon, pattern

LEXICON = Lexicon(
    kinds=(
        ("reason", pattern(r"为什么|為什麼|为何|為何|原因")),
        ("number", pattern(r"多少|几[个個种種次天年]|幾[個種次天年]|多[大长長高远遠久深快]")),
        ("person", pattern(r"谁|誰|哪位")),
        ("time", pattern(r"什么时候|什麼時候|何时|何時|哪[一]?[年天月]|几[点月年]")),
        ("place", pattern(r"哪里|哪裡|哪儿|何处|何處|在哪|哪个?(?:国家|城市|地方)")),
        ("manner", pattern(r"怎么|怎麼|怎样|怎樣|如何")),
        ("definition", pattern(r"^什么是|^什麼是|是什么[？?]?$|是什麼[？?]?$|什么意思")),
        ("thing", pattern(r"什么|什麼|哪[个個些种種]")),
    ),
    evidence={
        "time": pattern(r"\d{2,4}\s*年|[一二三四五六七八九十]+月|世纪|世紀|\d+[日号]"),
        "number": pattern(r"\d|[一二两三四五六七八九十百千万亿]+"),
        "reason": pattern(r"因为|因為|由于|由於|所以|因此|为了|導致|导致"),
        "manner": pattern(r"通过|通過|使用|利用|以"),
        "place": pattern(r"在|位于|位於"),
        "definition": pattern(r"是|指|称为|稱為"),
    },
    continues=pattern(r"(?:[他她它]们?|这|這|那|该|該|其)"),
    pronouns=frozenset(("它", "它们", "它們", "他", "他们", "他們", "她", "她们", "她們", "其")),
    demonstratives=pattern(
        r"(?P<reference>这个|這個|那个|那個|这些|那些|这(?=是|有|怎|为)|那(?=是|有|怎|为))"
    ),
    ordinals={"第一": 0, "前者": 0, "第二": 1, "第三": 2, "第四": 3, "最后": -1, "后者": -1},
    ordinal_reference=pattern(
        r"(?P<reference>(?P<ordinal>第[一二三四]|最后一?)[个個种種项項条條]?(?=[是呢？?的]|$)|(?P<pair>前者|后者))"
    ),
    instead=pattern(r"^\W*(?:那么?)?(?P<topic>[^是什么谁怎哪为]{1,20})呢\W*$"),
    more=pattern(
        r"^\W*(?:为什么|為什麼|怎么|如何|详细说说|还有呢|继续|请继续|举个?例子?|更多)(?:呢)?\W*$"
    ),
    unsaid=pattern(
        r"什么时候|什麼時候|为什么|為什麼|什么|什麼|谁|誰|哪[里裡儿个個些种種位]|在哪|哪|多少|几[个個]|怎么样|怎么|怎麼|怎样"
        r"|如何|为何|為何|何时|何處|何处|请问|請問|是|的|了(?!解)|[吗嗎呢吧啊]"
    ),
    genitive="{}的",
    greeting=pattern(r"^\W*(?:你好|您好|大家好|早上好|晚上好|嗨)\W*$"),
    thanks=pattern(r"^\W*(?:谢谢|謝謝|多谢|再见)(?:你|您)?\W*$"),
    recall=pattern(
        r"我(?:刚才|刚刚|之前|前面)?(?:问|問)(?:了|过)?(?:什么|什麼)|我的(?:上一个|第一个)问题"
    ),
    first_recalled=pattern(r"第一"),
    compound=pattern(r"[？?](?=\s*\w)"),
)
