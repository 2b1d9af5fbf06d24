"""The default model: rules decide, and answers are quotes from the documents."""
