"""Rules of chats, without input and output."""
