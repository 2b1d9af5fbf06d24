"""A turn goes on after its cause is mended, or runs again from its record."""
