"""The constants of the extractive answers, and where they come from.

SENTENCE: conditional logit over the sentences of the eight best passages (one choice for each
question; L2 penalty 0.0005). ANSWERABLE: logistic regression, questions asked with and without
the article that answers them. Both fitted on SQuAD-form questions, cross-validated by article:
`python benchmarks/answers.py DATASET --fit` fits them again on any such set and prints both
tables and what they reach on articles that they were not fitted on. There, before anything is
refused, the best sentence held the answer to 0.788 of the questions and one of the best three
to 0.938; of the questions without their article 0.872 were refused, of the others 0.025.

Every feature is generic (features.py, evidence.py); no word of any text is in here. The one
number set by hand is `defines`: such questions are too few in the set to fit it, and it is
given the weight of the evidence for numbers.
"""

SENTENCE: dict[str, float] = {
    "count": 2.25,
    "core": 1.42,
    "local": 1.84,
    "only_here": 1.33,
    "words": 3.62,
    "operators": 1.07,
    "focus": 1.11,
    "before": 1.81,
    "before_continued": 1.35,
    "after": 1.21,
    "after_continued": 1.14,
    "earlier": 1.23,
    "heading": 0.23,
    "passage": 2.12,
    "passage_log": 3.03,
    "new_terms": -0.65,
    "restates": 0.53,
    "aside": 0.51,
    "time": 1.17,
    "number": 2.27,
    "unit": 2.31,
    "person": 1.16,
    "person_pronoun": -1.64,
    "place": 0.98,
    "reason": 1.05,
    "defines": 2.3,
    "named": 0.85,
}
ANSWERABLE: dict[str, float] = {
    "bias": -10.43,
    "passage": 19.94,
    "nearby": 2.93,
    "names": 2.4,
    "kind": 2.02,
}

# Below this probability an answer is not given. Chosen so that an unanswerable question is
# refused seven times in eight, and an answerable one three times in a hundred.
ENOUGH = 0.2
