"""The pages, asked as a browser without scripts asks."""
