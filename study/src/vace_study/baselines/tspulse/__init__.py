"""TSPulse (2026), zero-shot and fine-tuned: hide each of the last patches, compare the guess.

Weights: a folder with config.json and model.safetensors of the branch main of
ibm-granite/granite-timeseries-tspulse-r1 (Apache-2.0), named by the setting `weights` or the
environment variable VACE_TSPULSE_WEIGHTS; none are shipped or fetched. Everything is built from
config.json; a network of another kind is refused.

Which head scores is a setting, and it matters: the leaderboard's rows take another head for each
data set (see docs/errata.md). `tspulse` is the head "time", which the
authors are said to take where a data set has no labelled tuning series.

One window a row is slow on a CPU: `tspulse-stride16` scores one window in 16 and interpolates,
`tspulse-tuned-small` also caps what is learned from. They are not the published systems.
"""

from vace_study.baselines.tspulse.detector import METHODS, TSPulse, load

__all__ = ["METHODS", "TSPulse", "load"]
