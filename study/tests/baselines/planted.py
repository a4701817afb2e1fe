"""A series with an anomaly that a network can find, and how well it was found."""

import numpy as np

TRAIN_ROWS, START, END = 600, 300, 330


def rhythm(rows, channels, seed, offset=0):
    rng = np.random.default_rng(seed)
    t = np.arange(offset, offset + rows)[:, None]
    phases = np.arange(channels) * 0.7
    return (
        0.5 + 0.3 * np.sin(2 * np.pi * t / 20 + phases) + 0.02 * rng.normal(size=(rows, channels))
    )


def planted(channels=3):
    """Training rows, and rows of the same kind with another rhythm and level from 300 to 330."""
    train = rhythm(TRAIN_ROWS, channels, 0)
    table = rhythm(500, channels, 1, TRAIN_ROWS)
    rng = np.random.default_rng(2)
    table[START:END] = 1.1 + 0.5 * rng.normal(size=(END - START, channels))
    return train, table


def contrast(scores, early=0):
    """Mean score in the anomaly by mean score elsewhere, with rows around it left out.

    `early`: by how many rows a method's windows put scores too early.
    """
    inside = scores[START - early : END - early]
    around = np.zeros(len(scores), bool)
    around[max(START - 120, 0) : END + 120] = True
    return inside.mean() / scores[~around].mean()
