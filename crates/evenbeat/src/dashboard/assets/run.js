/* One run: how it stands or why it ended, its log, and its other attempts. */
