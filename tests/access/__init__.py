"""Who may do what, for every route, every frame of the socket and every page of the admin."""
