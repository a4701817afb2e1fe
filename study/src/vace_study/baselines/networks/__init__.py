"""What the neural baselines share: windows, training, layers, and a detector around a network.

`windows` and `detector` import no torch, so that methods can be listed without it; `batches`,
`training` and `layers` are loaded when a network is fitted.
"""
