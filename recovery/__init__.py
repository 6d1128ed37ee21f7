"""What happens to sessions whose owner died: discovery, claims, decisions."""
