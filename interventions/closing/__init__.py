"""What a person does to an entry, as transactions."""
