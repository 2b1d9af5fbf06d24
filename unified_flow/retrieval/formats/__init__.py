"""File formats: the bytes of a file to text, its sections, and the chunks that the index keeps."""
