"""Text and notebook card of a detector, and the contents of the report of a detection."""
