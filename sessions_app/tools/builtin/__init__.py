"""The tools that come with the product and need no key."""
