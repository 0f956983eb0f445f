"""What trials leave on disk, sealed, and the pandas frames that are made of it. No torch."""
