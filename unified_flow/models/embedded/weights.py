"""The constants of the extractive answers, and where they come from.

SENTENCE: conditional logit over the sentences of the eight best passages (one choice for each
question; L2 penalty 0.0005). ANSWERABLE: logistic regression, questions asked with and without
the article that answers them. Both fitted on SQuAD-form questions, cross-validated by article:
`python benchmarks/answers.py DATASET --fit` fits them again on any such set and prints both
tables and what they reach on articles that they were not fitted on.

Every feature is generic (features.py, evidence.py); no word of any text is in here. The one
number set by hand is `defines`: such questions are too few in the set to fit it, and it is
given the weight of the evidence for numbers.
"""

SENTENCE: dict[str, float] = {
    "count": 2.25,
    "core": 1.41,
    "local": 1.85,
    "only_here": 1.32,
    "words": 3.61,
    "operators": 1.07,
    "focus": 1.11,
    "before": 1.8,
    "before_continued": 1.34,
    "after": 1.2,
    "after_continued": 1.14,
    "earlier": 1.22,
    "heading": 0.23,
    "passage": 2.13,
    "passage_log": 3.05,
    "new_terms": -0.64,
    "restates": 0.53,
    "aside": 0.51,
    "time": 1.17,
    "number": 2.27,
    "unit": 2.31,
    "person": 1.16,
    "person_pronoun": -1.63,
    "place": 0.99,
    "reason": 1.05,
    "defines": 2.3,
    "named": 0.85,
}
ANSWERABLE: dict[str, float] = {
    "bias": -10.31,
    "passage": 19.93,
    "nearby": 3.08,
    "names": 2.09,
    "kind": 2.1,
}

# Below this probability an answer is not given. Chosen so that an unanswerable question is
# refused seven times in eight, and an answerable one three times in a hundred.
ENOUGH = 0.2
