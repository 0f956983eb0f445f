"""The skeletons that slots plug into, and the keyed randomness that pairs their arms."""
