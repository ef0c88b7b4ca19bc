"""Attack the guarantees of the service, and print what was counted.

``make proof`` attacks every guarantee within an hour. docs/proof.md says what each part guarantees,
how it attacks, and the counts of the last runs.
"""
