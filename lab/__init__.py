"""The lab: the automatic adversary, predictions, pictures, load and soak tools.

Those who develop the judge run these; its users need none of them.
"""
