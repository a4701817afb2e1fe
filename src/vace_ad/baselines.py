"""Says for one version where `vace_ad.baselines` went."""

raise ImportError(
    "vace_ad.baselines is now vace_study.baselines: pip install vace-ad-study, then import that"
)
