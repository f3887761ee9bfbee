"""Find kinds of animals in a table of what they have: fur, feathers, eggs, fins.

The table is the Zoo data of R. Forsyth (UCI Machine Learning Repository, CC BY 4.0), with legs as
"up to 4" and "more".  Nobody tells the model what a bird is.

python examples/animals.py [picture.png]
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

from hcnet import BooleanMatrixFactorization
from hcnet.plotting import save_picture, show_factors

TABLE = Path(__file__).with_name("animals.csv")
RANK = 5


def main() -> None:
    """Factor the table, say what was found, and draw it."""
    path = sys.argv[1] if len(sys.argv) > 1 else "animals.png"
    with TABLE.open(encoding="utf-8", newline="") as file:
        (_, *header), *rows = csv.reader(file)
    animals, traits = [row[0] for row in rows], np.array(header)
    X = np.array([row[1:] for row in rows], int)

    model = BooleanMatrixFactorization(RANK, objective="error", random_state=0).fit(X)
    print(f"{len(animals)} animals, {len(traits)} traits, {RANK} components:")
    print(f"{model.errors_} of {X.size} entries are wrong ({model.errors_ / X.size:.1%})")
    for component, has in zip(model.components_, model.codes_.T, strict=True):
        members = [animals[k] for k in np.flatnonzero(has)]
        print(f"\n  {', '.join(traits[component])}")
        print(f"    {len(members)} animals: {', '.join(members[:7])}, …")

    # An animal with many wrong entries is one that its kinds do not describe.
    wrong = model.inverse_transform(model.codes_) != X
    print("\nexceptions:")
    for k in np.argsort(-wrong.sum(axis=1), kind="stable")[:4]:
        odd = [f"{'' if X[k, j] else 'no '}{traits[j]}" for j in np.flatnonzero(wrong[k])]
        print(f"  {animals[k]}: {', '.join(odd)}")

    picture = show_factors(model, X, rows=animals, columns=traits.tolist(), scale=14)
    save_picture(picture, path, overwrite=True)
    print(f"picture: {path}")


if __name__ == "__main__":
    main()
