"""What several rooms use, and what knows none of them."""
