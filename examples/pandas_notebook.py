"""A pandas session, as one would type it into a notebook: when, how rare, which sensors.

Run it with:  python examples/pandas_notebook.py
"""

# %% A table of sensors with a time index: here, a simulated pumping station.
import pandas as pd

from vace_ad import VACE
from vace_ad.alarms import Budget
from vace_ad.demo.plant import simulate

plant = simulate(days=20, train_days=10, seed=1)
table = pd.DataFrame(plant.values, index=pd.DatetimeIndex(plant.time), columns=plant.names)
normal, recent = table[: plant.train_rows], table[plant.train_rows :]
print(table.iloc[:3, :5].round(2))

# %% Learn what is normal, then ask for events: at most about one false alarm a week.
detector = VACE(random_state=0).fit(normal)
found = detector.detect(recent, budget=Budget(1, "week"))
events = found.to_frame()
print(events[["start_time", "end_time", "severity", "signal", "channels"]].to_string(index=False))

# %% Scores come back row by row, so they join the table by its index.
scored = recent.assign(score=found.scores)
print(scored["score"].resample("1D").max().round(2))

# %% Which sensors made the strongest event?
worst = events.loc[events["severity"].idxmax()]
blame = detector.explain(recent, int(worst["start"]), int(worst["end"]))
for sensor, share in blame.top(3):
    print(f"{sensor:20} {share:.0%}")

# %% What was really wrong (known, because the plant is simulated).
for fault in plant.faults:
    print(f"{plant.time[fault.start]!s:.16}  {fault.kind:20} {fault.sensor}")
