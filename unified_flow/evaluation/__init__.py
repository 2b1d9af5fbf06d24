"""How good the answers are: a set of questions through the same flow as `ask`, and what came of it
(architecture/evaluation.md)."""
