"""What an instructor shows and drives a class with: the projector's page, and the console."""
