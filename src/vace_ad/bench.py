"""Says for one version where `vace_ad.bench` went."""

raise ImportError("vace_ad.bench is now vace_study: pip install vace-ad-study, then import that")
