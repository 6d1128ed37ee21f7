"""One command that starts everything: the web server and the workers under one parent."""
