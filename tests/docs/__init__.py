"""What the documentation shows is what works."""
