"""The components that come with Ablate, one module a slot, registered through the same entry points as anyone's."""
