"""What the model is told: select the visible transcript, lower it to turns."""
