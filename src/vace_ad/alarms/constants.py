"""Every number that shapes an alarm, in one place.

Chosen on simulated plants (seeds 0 to 15 and 200 to 223) and on the real series at hand.
`benchmarks/alarm_constants.py` tells what a family is worth whose rows had no say in the choice.
"""

# Recent baseline: a residual is judged against its own recent mean and spread.
BASELINE_HALF_LIFE = 500  # rows
BASELINE_CLIP = 3.0  # deviations by which one row can pull it at most
WARM_UP = 64  # rows after a start or a cut that only fill the averages; the training weighs as much
BASELINE_BLOCK = WARM_UP // 4  # rows that share a baseline

# Evidence: nats, −log of the share of held-out rows that are as far off.
TAIL_SHARE = 0.02  # of held-out rows from which a generalised Pareto law takes over
MOST_NATS = 30.0  # of one cell or score
MOST_STUCK_NATS = 5.0  # of one repeated value
OUTDATED = 5.0  # divides nats of cells at most, where the model is out of date; power of how far

# Scan: W = max(0, W + nats − price).
LOW_PRICE = 1.5  # finds what is weak and long
HIGH_PRICE = 6.0  # finds what is strong and short
MIDDLE_PRICE = (LOW_PRICE * HIGH_PRICE) ** 0.5  # of stuck values
SCORE_PRICE = 0.34  # of the score: log of 1.4 times its recent level

# Limits: the tail of excursions on held-out rows.
PEAKS = 15  # highest excursions of a line that its tail is fitted to
PRIOR_PEAKS = 10  # weight of the mean tail of all lines
PRIOR_SHAPE = 0.3  # of a heavy tail, as likely as so many peaks before any is seen
SCORE_RATE = 1.6e-3  # a row, of excursions of the score above 1, and 1/h of it above h: twice as
# many as normal rows of real series show, so that cells and score together keep the budget

# Training rows that are left out: excursions that one in so many clean series would show.
CLEAN_SERIES = 1_000
SET_ASIDE = 3  # highest excursions of a line that do not tell what is normal

# Events.
DOUBT = 4.0  # nats that a weak alarm which the score did not confirm asks of the next one
REST = 48  # rows without new evidence after which a line of an event is over
MOST_MARGIN = 3.0  # nats beyond a limit that count for a suspect; with fewer an alarm is weak
MOST_TIMES = 400  # a channel's normal contribution that count for a suspect
