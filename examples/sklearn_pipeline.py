"""VACE as the last step of a scikit-learn pipeline, with its settings searched over.

Run it with:  python examples/sklearn_pipeline.py
"""

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler

from vace_ad.compat.sklearn import VACEOutlierDetector
from vace_ad.demo.plant import simulate
from vace_ad.metrics import evaluate

plant = simulate(days=16, train_days=8, seed=2)
train, test = plant.values[: plant.train_rows], plant.values[plant.train_rows :]
labels = plant.labels[plant.train_rows :]

pipeline = make_pipeline(SimpleImputer(), RobustScaler(), VACEOutlierDetector(random_state=0))
grid = ParameterGrid({"vaceoutlierdetector__patch_length": [48, 96]})
for settings in grid:
    pipeline.set_params(**settings).fit(train)
    scores = -pipeline.score_samples(test)
    quality = evaluate(labels, scores, window=96)["VUS-PR"]
    flagged = np.mean(pipeline.predict(test) == -1)
    print(f"{settings}: VUS-PR {quality:.2f}, {flagged:.1%} of rows flagged")
