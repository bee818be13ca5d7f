"""Cases with their labels as files: six layouts to rows and back, and some public sets to rows."""
