"""What an operator's instruments ask: is it alive, is it ready, how is it doing."""
